/** A real Redis server of a test's own: free port, nothing on disk. */
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './gateway.ts'
import { partPath } from './parts.ts'
import { type Program, startProgram } from './program.ts'
import { waitFor } from './wait-for.ts'

export interface RealRedis {
  readonly port: number
  kill(): Promise<void>
  /** Starts it again on its port, without its values. */
  restart(): Promise<void>
  remove(): Promise<void>
}

/** Needs the part `redis`. */
export async function startRealRedis(password: string): Promise<RealRedis> {
  const program = join(partPath('redis'), 'redis-server')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-'))
  const port = await freePort()
  let running: Program
  const restart = async () => {
    running = startProgram(
      program,
      [
        ...['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', ''],
        ...['--requirepass', password, '--maxmemory', '16mb', '--maxmemory-policy', 'allkeys-lru'],
      ],
      join(folder, 'server.log'),
      { ...process.env, LD_LIBRARY_PATH: partPath('redis') },
    )
    await waitFor('the Redis server', () => {
      if (running.hasExited()) throw new Error(`redis-server has ended: ${running.lastLines()}`)
      return isOpen(port)
    })
  }
  await restart()
  return {
    port,
    restart,
    kill: () => running.stop(),
    async remove() {
      await running.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
