/* PTX versions and the drivers that accept them (base/ptx/versions.def). CUDA versions are those of
 * cuDriverGetVersion: 12040 is 12.4. PTX versions are times ten: 84 is 8.4. */
#ifndef BASE_PTX_VERSIONS_H
#define BASE_PTX_VERSIONS_H

/* The newest PTX version that a driver of a CUDA version accepts. 0: older than the table;
 * EV_PTX_ANY: newer than the table. */
#define EV_PTX_ANY 999
int ev_ptx_taken(int cuda);

typedef struct ev_ptx_row {
    int cuda;   /* the driver's CUDA version */
    int branch; /* of the drivers that came with that CUDA version: 550 */
    int ptx;    /* the newest PTX version that they accept */
} ev_ptx_row;

/* The oldest driver of the table that accepts a PTX version; NULL: newer than the table. */
const ev_ptx_row *ev_ptx_needs(int ptx);

#endif
