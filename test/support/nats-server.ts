/** A NATS server with JetStream of a test's own: free port, temporary store. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { partPath } from './parts.ts'
import { type Program, startProgram } from './program.ts'
import { waitFor } from './wait-for.ts'

export interface NatsServer {
  /** Its store; gone with it. */
  readonly folder: string
  readonly url: string
  /** SIGKILL; written data stays. */
  kill(): Promise<void>
  /** Starts it again on its port and its store. */
  restart(): Promise<void>
  /** Kills it and removes its store. */
  remove(): Promise<void>
}

/** Needs the part `nats-server`. */
export async function startNatsServer(): Promise<NatsServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-nats-'))
  let program: Program
  const start = async (port: number): Promise<string> => {
    program = startProgram(
      partPath('nats-server'),
      ['-js', '-a', '127.0.0.1', '-p', String(port), '-sd', folder, '--ports_file_dir', folder],
      join(folder, 'server.log'),
    )
    return waitFor('the NATS server', () => {
      if (program.hasExited()) throw new Error(`nats-server has ended: ${program.lastLines()}`)
      return announcedUrl(folder)
    })
  }
  const kill = async () => {
    await program.stop()
    for (const file of portsFiles(folder)) rmSync(file)
  }
  const url = await start(-1)
  return {
    folder,
    url,
    kill,
    restart: async () => void (await start(Number(new URL(url).port))),
    remove: async () => {
      await program.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const portsFiles = (folder: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.ports'))
    .map((name) => join(folder, name))

/** The server writes its addresses into a file once it listens. */
function announcedUrl(folder: string): string | undefined {
  for (const file of portsFiles(folder)) {
    if (!existsSync(file)) continue
    try {
      const { nats } = JSON.parse(readFileSync(file, 'utf8')) as { nats?: string[] }
      if (nats?.[0] !== undefined) return nats[0]
    } catch {
      // It is still being written.
    }
  }
  return undefined
}
