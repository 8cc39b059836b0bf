/* Makes the folder of a study with invented results, for the tests of report.html. */
#ifndef STUDY_FOLDER_H
#define STUDY_FOLDER_H

#include "report/run_folder.h"

/* Three points of two runs each: rates 0.001, 0.01 and 0.1 with two optimizers, trained to steps 20
 * and 60 by halving. The last one failed. */
static inline void put_study(const char *folder)
{
    put(folder, "study.json",
        "{\"metric\": \"accuracy\", \"repeats\": 2, \"seed\": 5, \"higher_is_better\": true, "
        "\"vary\": {\"schedule.base_lr\": {\"log_uniform\": [0.001, 0.1]}, \"optim\": "
        "[{\"name\": \"momentum\", \"momentum\": 0.9}, {\"name\": \"adamw\", \"beta1\": "
        "{\"uniform\": [0.8, 0.99]}}]}, \"points\": ["
        "{\"name\": \"lr=0.001\", \"values\": {\"schedule.base_lr\": 0.001, \"optim\": {\"name\": "
        "\"momentum\", \"momentum\": 0.9}}}, "
        "{\"name\": \"lr=0.01\", \"values\": {\"schedule.base_lr\": 0.01, \"optim\": {\"name\": "
        "\"adamw\", \"beta1\": 0.9}}}, "
        "{\"name\": \"lr=0.1\", \"values\": {\"schedule.base_lr\": 0.1, \"optim\": {\"name\": "
        "\"adamw\", \"beta1\": 0.8}}}]}");
    put(folder, "study.jsonl",
        "{\"point\": \"lr=0.001\", \"repeat\": 0, \"step\": 20, \"accuracy\": 0.75, \"seconds\": "
        "4}\n"
        "{\"point\": \"lr=0.01\", \"repeat\": 1, \"step\": 20, \"accuracy\": 0.5, \"seconds\": 4}\n"
        "{\"point\": \"lr=0.001\", \"repeat\": 1, \"step\": 20, \"accuracy\": 0.75, \"seconds\": "
        "4}\n"
        "{\"point\": \"lr=0.01\", \"repeat\": 0, \"step\": 20, \"accuracy\": 0.5, \"seconds\": 4}\n"
        "{\"point\": \"lr=0.1\", \"repeat\": 0, \"step\": 20, \"seconds\": 4, \"error\": \"not "
        "finite <b>\"}\n"
        "{\"point\": \"lr=0.1\", \"repeat\": 1, \"step\": 20, \"accuracy\": 0.25, \"seconds\": 4}\n"
        "{\"point\": \"lr=0.01\", \"repeat\": 0, \"step\": 60, \"accuracy\": 0.5, \"seconds\": 8}\n"
        "{\"point\": \"lr=0.01\", \"repeat\": 1, \"step\": 60, \"accuracy\": 0.7, \"seconds\": 8}\n"
        "{\"point\": \"lr=0.001\", \"repeat\": 0, \"step\": 60, \"accur");
}

#endif
