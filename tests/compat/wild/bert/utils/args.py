"""Arguments for configuration."""



import six


def str2bool(v):
    # because argparse does not support to parse "true, False" as python boolean
    return v.lower() in ("true", "t", "1")


class ArgumentGroup:
    def __init__(self, parser, title, des):
        self._group = parser.add_argument_group(title=title, description=des)

    def add_arg(self, name, type, default, help, **kwargs):
        type = str2bool if type == bool else type
        self._group.add_argument(
            "--" + name,
            default=default,
            type=type,
            help=help + " Default: %(default)s.",
            **kwargs,
        )


def print_arguments(args):
    print("-----------  Configuration Arguments -----------")
    for arg, value in sorted(six.iteritems(vars(args))):
        if arg != "init_checkpoint":
            print("%s: %s" % (arg, value))
    print("------------------------------------------------")
