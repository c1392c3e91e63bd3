// convoy-rank: the worker process that `convoy run` starts on every device.
#include "convoy/train/rank/rank_main.h"

int main(int argc, char** argv) { return convoy::train::rank_main(argc, argv, convoy::zoo::reference_models()); }
