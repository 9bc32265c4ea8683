/**
 * The parts that a test file needs: each starts before the tests, in the order of the file, and stops
 * after them in reverse order. If one cannot start, the others are still stopped.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { Authority, type Lifetime } from './certificates.ts'
import { type GatewayOptions, type RunningGateway, startGateway } from './gateway.ts'
import { type Answer, startUpstream, type Upstream } from './upstream.ts'

/**
 * Starts a part before the tests of the file or `describe` and ends it after them: by `end`, or else
 * by its `dispose` or `close`. The constant it returns stands for the started part, so use it only in
 * tests, hooks and later fixtures. `startMs` replaces the time that it may take to start.
 */
export function useFixture<Part extends object>(
  start: () => Promise<Part> | Part,
  end: (part: Part) => unknown = release,
  startMs?: number,
): Part {
  let part: Part | undefined
  beforeAll(async () => {
    part = await start()
  }, startMs)
  afterAll(async () => {
    if (part !== undefined) await end(part)
  })
  return standIn(() => {
    if (part === undefined) throw new Error('this fixture is used before it has started')
    return part
  })
}

/** A `sluice run` on manifests that may name what earlier fixtures have started. */
export function useGateway(
  options: () => GatewayOptions | Promise<GatewayOptions>,
): RunningGateway {
  return useFixture(async () => startGateway(await options()))
}

/** An upstream on a free loopback port; by default it echoes requests as JSON. */
export function useUpstream(name?: string, answer?: Answer): Upstream {
  return useFixture(() => startUpstream(name, answer))
}

/** A server of a test's own on a free loopback port; its connections end with it. */
export function useListening(server: Server & { closeAllConnections?(): void }): {
  readonly port: number
} {
  return useFixture(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const close = () => {
      server.close()
      server.closeAllConnections?.()
    }
    return { port: (server.address() as AddressInfo).port, close }
  })
}

/** A certificate authority that can issue at once, also while the file is read. */
export function useAuthority(lifetime?: Lifetime): Authority {
  const authority = new Authority(lifetime)
  afterAll(() => authority.dispose())
  return authority
}

/** An empty folder for the time of the tests, there at once. */
export function useFolder(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function release(part: { dispose?(): unknown; close?(): unknown }): unknown {
  return part.dispose === undefined ? part.close?.() : part.dispose()
}

/** Reads and writes the properties of a part that is there only later. */
function standIn<Part extends object>(part: () => Part): Part {
  return new Proxy({} as Part, {
    get(_, key) {
      const value: unknown = Reflect.get(part(), key)
      // Methods need the part itself as `this`: private fields do not pass through a Proxy.
      return typeof value === 'function' ? value.bind(part()) : value
    },
    set: (_, key, value) => Reflect.set(part(), key, value),
  })
}
