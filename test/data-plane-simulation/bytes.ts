/** Returns what was not read yet followed by what has arrived, as a copy of the latter. */
export const appended = (rest: Buffer<ArrayBuffer>, bytes: Uint8Array): Buffer<ArrayBuffer> =>
  rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([rest, bytes])
