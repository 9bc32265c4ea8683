import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { ListenerPorts } from '../../src/gateway/proxy/workers/listener-ports.ts'
import { PortClaims } from '../../src/gateway/proxy/workers/port-claims.ts'
import type { PortName } from '../../src/gateway/proxy/workers/worker-messages.ts'
import type { ListenerResource } from '../../src/ground/model/resources.ts'
import { eventually } from '../support/wait-for.ts'
import { freePort, hold } from './free-port.ts'

const host = '127.0.0.1'

/** Binds with plain servers, the way the engine does. */
class Binder {
  readonly servers = new Map<number, Server>()
  readonly secure = new Set<number>()
  readonly datagrams = new Map<number, Socket>()
  async listen(port: number, _limits?: unknown, tls?: unknown): Promise<number> {
    if (tls === undefined) this.secure.delete(port)
    else this.secure.add(port)
    this.servers.set(port, await hold(port))
    return port
  }
  configure(): void {}
  listenStream(port: number): Promise<number> {
    return this.listen(port)
  }
  async listenDatagrams(port: number): Promise<number> {
    const socket = createSocket('udp4')
    await once(socket.bind(port, host), 'listening')
    this.datagrams.set(port, socket)
    return port
  }
  async unlistenDatagrams(port: number): Promise<void> {
    const socket = this.datagrams.get(port)
    this.datagrams.delete(port)
    await new Promise<void>((resolve) => socket?.close(resolve))
  }
  async unlisten(port: number): Promise<void> {
    const server = this.servers.get(port)
    this.servers.delete(port)
    await new Promise((resolve) => server?.close(resolve))
  }
}

const listener = (
  name: string,
  port: number,
  protocol: ListenerResource['protocol'] = 'HTTP',
): ListenerResource => ({
  type: 'listener',
  key: `listener/Gateway/ns/gw/${name}`,
  gateway: { namespace: 'ns', name: 'gw' },
  owner: { kind: 'Gateway', namespace: 'ns', name: 'gw' },
  section: name,
  port,
  protocol,
  hostname: '',
})

const change = (sequence: number, upserted: ListenerResource[], removed: string[] = []) => ({
  sequence,
  upserted: upserted.map((resource) => ({ version: `${sequence}`, resource })),
  removed,
})

describe('the ports of a worker', () => {
  const cleanups: (() => unknown)[] = []
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup()
  })

  function open() {
    const binder = new Binder()
    const changes: PortName[][] = []
    const ports: ListenerPorts = new ListenerPorts({
      engine: binder,
      settings: () => ({ limits: {} }),
      chooseTls: () => undefined,
      claim: () => Promise.resolve(),
      release: () => undefined,
      onChange: () => changes.push(ports.bound()),
    })
    cleanups.push(async () => {
      ports.stop()
      for (const port of [...binder.servers.keys()]) await binder.unlisten(port)
      for (const port of [...binder.datagrams.keys()]) await binder.unlistenDatagrams(port)
    })
    return { ports, changes, binder }
  }

  it('are bound once for all listeners, and closed with the last one', async () => {
    const { ports } = open()
    const port = await freePort()
    await ports.update(change(1, [listener('a', port), listener('b', port)]))
    expect(ports.bound()).toEqual([port])
    await ports.update(change(2, [], ['listener/Gateway/ns/gw/a']))
    expect(ports.bound()).toEqual([port])
    await ports.update(change(3, [], ['listener/Gateway/ns/gw/b']))
    await eventually(() => expect(ports.bound()).toEqual([]))
    const stranger = await eventually(() => hold(port))
    cleanups.push(() => stranger.close())
  })

  it('are bound again if plaintext becomes TLS, and the reverse', async () => {
    const { ports, binder } = open()
    const port = await freePort()
    await ports.update(change(1, [listener('a', port)]))
    const first = binder.servers.get(port)
    await ports.update(change(2, [listener('a', port, 'HTTPS')]))
    expect(ports.bound()).toEqual([port])
    expect(binder.secure.has(port)).toBe(true)
    expect(binder.servers.get(port)).not.toBe(first)
    await ports.update(change(3, [listener('a', port)]))
    expect(binder.secure.has(port)).toBe(false)
    expect(ports.bound()).toEqual([port])
  })

  it('are plaintext or TLS by the listener with the smallest key; conflicting ones are rejected', async () => {
    const { ports, binder } = open()
    const port = await freePort()
    await ports.update(change(1, [listener('b', port, 'HTTPS')]))
    await ports.update(change(2, [listener('a', port), listener('c', port, 'HTTPS')]))
    expect(binder.secure.has(port)).toBe(false)
    const rejected = (name: string, sequence: number) => ({
      key: `listener/Gateway/ns/gw/${name}`,
      sequence,
      code: 'port_in_use',
      message: `port is already in use: port ${port}: another listener serves HTTP on it`,
    })
    expect(ports.rejections()).toEqual([rejected('b', 1), rejected('c', 2)])
    await ports.update(change(3, [], ['listener/Gateway/ns/gw/a']))
    expect(binder.secure.has(port)).toBe(true)
    expect(ports.rejections()).toEqual([])
  })

  it('follow a listener that moves', async () => {
    const { ports } = open()
    const [from, to] = [await freePort(), await freePort()]
    await ports.update(change(1, [listener('a', from)]))
    await ports.update(change(2, [listener('a', to)]))
    await eventually(() => expect(ports.bound()).toEqual([to]))
  })

  it('that the process may not use are reported with what permits them', async () => {
    const { ports, binder } = open()
    binder.listen = (port: number) =>
      Promise.reject(new Error(`listen EACCES: permission denied 0.0.0.0:${port}`))
    await ports.update(change(1, [listener('low', 80), listener('high', 8080)]))
    expect(ports.rejections()).toMatchObject([
      {
        code: 'port_not_permitted',
        message: expect.stringMatching(
          /^no permission to listen on the port: port 80: ports below/,
        ),
      },
      { code: 'port_not_permitted', message: expect.stringContaining('port 8080: listen EACCES') },
    ])
  })

  it('are independent: the listeners of a port in use are rejected, and recover', async () => {
    const { ports, changes } = open()
    const [taken, free] = [await freePort(), await freePort()]
    const stranger = await hold(taken)
    await ports.update(change(4, [listener('a', taken), listener('b', taken), listener('c', free)]))
    expect(ports.bound()).toEqual([free])
    expect(ports.unbound()).toEqual([taken])
    expect(ports.rejections()).toEqual(
      ['a', 'b'].map((name) => ({
        key: `listener/Gateway/ns/gw/${name}`,
        sequence: 4,
        code: 'port_in_use',
        message: expect.stringMatching(
          new RegExp(`^port is already in use: port ${taken}: .*EADDRINUSE`),
        ),
      })),
    )
    await new Promise((resolve) => stranger.close(resolve))
    await eventually(() => expect(ports.rejections()).toEqual([]))
    expect(changes.at(-1)).toEqual([taken, free])
    expect(ports.unbound()).toEqual([])
  })

  it('are not retried once no listener needs them', async () => {
    const { ports } = open()
    const taken = await freePort()
    const stranger = await hold(taken)
    cleanups.push(() => stranger.close())
    await ports.update(change(1, [listener('a', taken)]))
    await ports.update(change(2, [], ['listener/Gateway/ns/gw/a']))
    expect(ports.rejections()).toEqual([])
    expect(ports.unbound()).toEqual([])
  })

  it('of UDP listeners are separate from TCP ports of the same number', async () => {
    const { ports, binder } = open()
    const port = await freePort()
    await ports.update(change(1, [listener('a', port, 'TCP'), listener('b', port, 'UDP')]))
    expect(ports.bound()).toEqual([port, `${port}/udp`])
    expect(binder.datagrams.has(port)).toBe(true)
    await ports.update(change(2, [], ['listener/Gateway/ns/gw/b']))
    await eventually(() => expect(ports.bound()).toEqual([port]))
    const stranger = createSocket('udp4')
    await once(stranger.bind(port, host), 'listening')
    cleanups.push(() => stranger.close())
    await ports.update(change(3, [listener('b', port, 'UDP')]))
    expect(ports.unbound()).toEqual([`${port}/udp`])
    expect(ports.rejections()).toMatchObject([
      { code: 'port_in_use', message: expect.stringContaining(`port ${port}/udp: `) },
    ])
  })

  it('are shared by HTTPS and TLS listeners', async () => {
    const { ports } = open()
    const port = await freePort()
    await ports.update(change(1, [listener('a', port, 'HTTPS'), listener('b', port, 'TLS')]))
    expect(ports.rejections()).toEqual([])
    await ports.update(change(2, [listener('c', port, 'TCP')]))
    expect(ports.rejections()).toMatchObject([
      { message: `port is already in use: port ${port}: another listener serves TLS on it` },
    ])
  })

  describe('bound by several workers', () => {
    it('are granted to every worker of the proxy while they are free or its own', async () => {
      const claims = new PortClaims(host, true)
      const port = await freePort()
      expect(await Promise.all([claims.claim(port, 0), claims.claim(port, 1)])).toEqual([
        undefined,
        undefined,
      ])
      const own = await hold(port)
      cleanups.push(() => own.close())
      expect(await claims.claim(port, 2)).toBeUndefined()
    })

    it('are refused while another process holds them, even if the system would share them', async () => {
      const claims = new PortClaims(host, true)
      const port = await freePort()
      const stranger = createServer()
      await new Promise<void>((resolve) =>
        stranger.listen({ host, port, reusePort: true }, () => resolve()),
      )
      expect(await claims.claim(port, 0)).toContain('EADDRINUSE')
      await new Promise((resolve) => stranger.close(resolve))
      expect(await claims.claim(port, 0)).toBeUndefined()
    })

    it('are checked again after the last worker has released them', async () => {
      const claims = new PortClaims(host, true)
      const port = await freePort()
      await claims.claim(port, 0)
      await claims.claim(port, 1)
      claims.releaseAll(0)
      claims.release(port, 1)
      const stranger = await hold(port)
      cleanups.push(() => stranger.close())
      expect(await claims.claim(port, 0)).toContain('EADDRINUSE')
    })
  })
})
