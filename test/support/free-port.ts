/** Ports for programs that cannot bind port 0 and report the port that they got. */
import { createServer } from 'node:net'

// Below what systems hand out to outgoing connections (32768 and up on Linux, 49152 elsewhere): a
// port of that range may be taken by any connection between the choice and the bind.
const lowest = 20_000
const highest = 32_000

const given = new Set<number>()

/**
 * A TCP port of 127.0.0.1 on which nothing listens now. It is never returned twice in one process or,
 * on Linux, in concurrent processes, since the caller may bind it later.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest))
    // Noted before anything is waited for: others may be choosing at the same time.
    if (given.has(port)) continue
    given.add(port)
    if ((await isClaimed(port)) && (await isFree(port))) return port
  }
}

/** A free port for each of the names. */
export async function freePorts<Name extends string>(
  ...names: readonly Name[]
): Promise<Record<Name, number>> {
  const ports = await Promise.all(names.map(async (name) => [name, await freePort()] as const))
  return Object.fromEntries(ports) as Record<Name, number>
}

/** Held until the process ends, by a name of the kernel's that no file is left of. */
function isClaimed(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return Promise.resolve(true)
  return new Promise((resolve) => {
    const claim = createServer().unref()
    claim.once('error', () => resolve(false))
    claim.listen(`\0sluice-test-port-${port}`, () => resolve(true))
  })
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
