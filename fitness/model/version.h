/* Which timing model this build has. */
#ifndef FITNESS_MODEL_VERSION_H
#define FITNESS_MODEL_VERSION_H

/* 16 hex digits: a fingerprint of the sources of the PTX reader, of the virtual machine and of the
 * timing model, and of the shipped descriptions of GPUs (cmake/model_version.cmake). Builds with
 * equal fingerprints model equal times for equal PTX, shapes and data. A changed comment changes
 * the fingerprint, too: times are then compared less strictly than they could be, and never too
 * strictly. */
const char *model_version(void);

#endif
