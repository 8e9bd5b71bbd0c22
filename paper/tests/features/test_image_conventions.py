"""The conventions of scikit-learn hold for all transformers of images."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from polytrain_paper.features import Deskew, Distort, FitToCanvas, LowFrequencyDFT


class AnyWidth:
    """Takes rows that are not square images for images of one row, so that checks may use any number of features."""

    def _shape_of(self, n_pixels, own_shape):
        try:
            return super()._shape_of(n_pixels, own_shape)
        except ValueError:
            return (1, n_pixels)


class AnyWidthCanvas(AnyWidth, FitToCanvas):
    pass


class AnyWidthDeskew(AnyWidth, Deskew):
    pass


class AnyWidthDistort(AnyWidth, Distort):
    pass


class AnyWidthDFT(AnyWidth, LowFrequencyDFT):
    pass


@parametrize_with_checks(
    [
        AnyWidthCanvas(size=6, margin=1),
        AnyWidthDeskew(),
        AnyWidthDeskew(center=False),
        AnyWidthDistort(),
        AnyWidthDistort(shift=(0.5, 1), rotation=5, thickness=-0.5),
        AnyWidthDFT(n_features=1),
    ]
)
def test_conventions(estimator, check):
    check(estimator)
