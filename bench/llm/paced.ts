/** Requests at a steady rate over kept connections, and how long each took. */
import { connect, type Socket } from 'node:net'

/** Milliseconds from the first byte of a request to the last of its response, `perSecond` of them. */
export async function paced(
  port: number,
  request: Buffer,
  perSecond: number,
  seconds: number,
): Promise<number[]> {
  const took: number[] = []
  const idle: Socket[] = []
  const all: Socket[] = []
  let failure: Error | undefined
  const open = (): Socket => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    all.push(socket)
    socket.on('error', (error) => {
      failure ??= error
    })
    readWhole(socket, (begun) => {
      took.push(performance.now() - begun)
      idle.push(socket)
    })
    return socket
  }
  const begun = performance.now()
  const wanted = perSecond * seconds
  let sent = 0
  while (sent < wanted && failure === undefined) {
    const due = Math.min(wanted, ((performance.now() - begun) / 1000) * perSecond)
    for (; sent < due; sent++) {
      const socket = idle.pop() ?? open()
      begins.set(socket, performance.now())
      socket.write(request)
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await new Promise((resolve) => setTimeout(resolve, 200))
  for (const socket of all) socket.destroy()
  if (failure !== undefined) throw failure
  return took
}

const begins = new WeakMap<Socket, number>()

function readWhole(socket: Socket, done: (begun: number) => void): void {
  let missing = 0
  socket.on('data', (piece: Buffer) => {
    if (missing > 0) missing -= piece.length
    else {
      const end = piece.indexOf('\r\n\r\n')
      const length = /content-length: *(\d+)/i.exec(piece.toString('latin1', 0, end))?.[1]
      missing = Number(length) - (piece.length - end - 4)
    }
    if (missing <= 0) done(begins.get(socket) ?? 0)
  })
}

/** Milliseconds between the pieces of `count` streams at a time, while `meanwhile` runs. */
export async function gapsOf(
  port: number,
  request: Buffer,
  count: number,
  meanwhile: () => Promise<void>,
): Promise<number[]> {
  const gaps: number[] = []
  let isOver = false
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => socket.write(request))
    let last: number | undefined
    socket.on('error', () => socket.destroy())
    socket.on('data', (piece: Buffer) => {
      const now = performance.now()
      if (last !== undefined && !isOver) gaps.push(now - last)
      last = now
      if (!piece.subarray(-5).equals(Buffer.from('0\r\n\r\n'))) return
      last = undefined
      if (!isOver) socket.write(request)
    })
    return socket
  })
  await new Promise((resolve) => setTimeout(resolve, 300))
  gaps.length = 0
  await meanwhile()
  isOver = true
  for (const socket of sockets) socket.destroy()
  return gaps
}
