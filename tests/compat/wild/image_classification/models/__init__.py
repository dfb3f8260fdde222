from .alexnet import AlexNet
from .densenet import DenseNet
from .googlenet import GoogleNet
from .mobilenet import MobileNet
from .mobilenet_v2 import MobileNetV2
from .resnet import ResNet18, ResNet50
from .se_resnext import SE_ResNeXt50_32x4d
from .shufflenet_v2 import ShuffleNetV2
from .squeezenet import SqueezeNet1_1
from .vgg import VGG11
