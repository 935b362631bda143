/* Memory, copies, streams and events, for a device whose work is done when a call returns: the calling thread.
 *
 * A device that works by itself keeps the same functions and puts its own queue in: copy and run go into the stream's queue and return at
 * once, event_record and event_wait go there too, synchronize and event_synchronize wait and give back a late error, once.
 */
#include "template.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

enum { ALIGNMENT = 64 }; /* what the ABI asks of a CPU; a device's is 256 */

/* With a stream a device may take memory from what the stream's earlier work gave back; here that work is done already. */
quire_status template_allocate(quire_device device, quire_stream* stream, size_t bytes, void** data) {
  const quire_status status = template_check_device(device);
  (void)stream;
  *data = NULL;
  if (status != QUIRE_OK) return status;
  /* aligned_alloc wants a multiple of the alignment; a call for no bytes gets an address all the same. */
  const size_t most = SIZE_MAX - (ALIGNMENT - 1);
  const size_t rounded = bytes == 0 ? ALIGNMENT : bytes <= most ? (bytes + (ALIGNMENT - 1)) / ALIGNMENT * ALIGNMENT : 0;
  if (rounded != 0) *data = aligned_alloc(ALIGNMENT, rounded);
  return *data != NULL ? QUIRE_OK : template_fail(QUIRE_UNAVAILABLE, "bytes: %zu; no memory for them", bytes);
}

quire_status template_free(quire_device device, quire_stream* stream, void* data) {
  const quire_status status = template_check_device(device);
  (void)stream;
  if (status == QUIRE_OK) free(data);
  return status;
}

quire_status template_copy(quire_stream* stream, void* to, quire_device to_device, const void* from, quire_device from_device,
                           size_t bytes) {
  quire_status status = template_check_device(to_device);
  (void)stream;
  if (status == QUIRE_OK) status = template_check_device(from_device);
  if (status == QUIRE_OK && bytes > 0) memmove(to, from, bytes); /* of no bytes the addresses may be null */
  return status;
}

/* ---- streams ---- */

/* A stream belongs to a device. Yours holds the queue. */
struct quire_stream {
  quire_device device;
};

quire_status template_stream_create(quire_device device, quire_stream** stream) {
  const quire_status status = template_check_device(device);
  *stream = NULL;
  if (status != QUIRE_OK) return status;
  *stream = malloc(sizeof **stream);
  if (*stream == NULL) return template_fail(QUIRE_UNAVAILABLE, "stream: no memory for one");
  (*stream)->device = device;
  return QUIRE_OK;
}

/* Waits for the stream's work first. */
quire_status template_stream_destroy(quire_stream* stream) {
  const quire_status status = template_synchronize(stream);
  free(stream);
  return status;
}

/* Nothing is ever on its way, and an error is answered by the call that made it. */
quire_status template_synchronize(quire_stream* stream) {
  (void)stream;
  return QUIRE_OK;
}

/* ---- events ---- */

/* Yours holds the place in a stream's queue that the last record stands behind. */
struct quire_event {
  quire_device device;
};

quire_status template_event_create(quire_device device, quire_event** event) {
  const quire_status status = template_check_device(device);
  *event = NULL;
  if (status != QUIRE_OK) return status;
  *event = malloc(sizeof **event);
  if (*event == NULL) return template_fail(QUIRE_UNAVAILABLE, "event: no memory for one");
  (*event)->device = device;
  return QUIRE_OK;
}

/* Does not wait. */
quire_status template_event_destroy(quire_event* event) {
  free(event);
  return QUIRE_OK;
}

/* Where work is done when its call returns, an event has always passed. */
quire_status template_event_record(quire_event* event, quire_stream* stream) {
  (void)event;
  (void)stream;
  return QUIRE_OK;
}
quire_status template_event_wait(quire_event* event, quire_stream* stream) {
  (void)event;
  (void)stream;
  return QUIRE_OK;
}
quire_status template_event_synchronize(quire_event* event) {
  (void)event;
  return QUIRE_OK;
}
