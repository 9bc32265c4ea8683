/**
 * Writes up to this size are made as one Latin-1 string (a copy, so the source may be reused);
 * larger ones are views of the source, which then must rest until the socket has drained.
 */
export const copyLimit = 16 * 1024

/** Also the sockets' own mark, so that a pending view always ends in a drain event. */
export const socketHighWaterMark = copyLimit

/**
 * The mark of TLS sockets, whose handle copies what it encrypts and tells a turn later that it has
 * left: two reads of an upstream may be under way, so that none is held up for nothing.
 */
export const encryptedHighWaterMark = 128 * 1024
