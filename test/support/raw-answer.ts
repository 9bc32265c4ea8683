import { connect } from 'node:net'

interface Target {
  readonly port: number
  /** Loopback address from which to connect. */
  readonly from?: string
}

/** Returns the answer to these bytes (Latin-1), which are sent in parts; `reset` if the connection is reset. */
export async function answerTo(
  { port, from = '127.0.0.1' }: Target,
  ...parts: string[]
): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: from })
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  const over = new Promise<string>((resolve) => {
    socket.once('end', () => resolve(text))
    socket.once('error', () => resolve('reset'))
  })
  for (const part of parts) {
    socket.write(part, 'latin1')
    await new Promise((resolve) => setImmediate(resolve))
  }
  return over
}
