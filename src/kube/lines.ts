const newline = 0x0a

/** The lines of a stream of bytes, without their ends; a line may come in any number of pieces. */
export async function* linesOf(stream: AsyncIterable<unknown>): AsyncGenerator<string> {
  let pieces: Buffer[] = []
  for await (const chunk of stream) {
    const bytes = chunk as Buffer
    let from = 0
    for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, from)) {
      pieces.push(bytes.subarray(from, at))
      const line = (pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)).toString()
      pieces = []
      from = at + 1
      if (line !== '') yield line
    }
    if (from < bytes.length) pieces.push(bytes.subarray(from))
  }
}
