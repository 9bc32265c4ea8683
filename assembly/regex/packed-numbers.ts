// Reads the packed numbers of the tables in unicode-data.ts, one table at a time.

/** Address of the next number. */
export let readAt: usize = 0

export function readFrom(address: usize): void {
  readAt = address
}

/** Reads the next number in base 128, low digits first. */
export function readNumber(): u32 {
  let value: u32 = 0
  let shift: u32 = 0
  while (true) {
    const byte = <u32>load<u8>(readAt++)
    value |= (byte & 127) << shift
    if (byte < 128) return value
    shift += 7
  }
}
