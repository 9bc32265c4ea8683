import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { afterAll, describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort, freePorts, startGateway } from '../support/gateway.ts'
import { gateway, manifest, staticBackend, streamRoute, toBackend } from '../support/manifests.ts'
import { startUdpUpstream, UdpClient } from '../support/stream-upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const clients: UdpClient[] = []

function newClient(to: number): UdpClient {
  const client = new UdpClient(to)
  clients.push(client)
  return client
}

/** Sends until it is answered: no datagram has to arrive. */
async function ask(client: UdpClient, text: string): Promise<string> {
  const before = client.answers.length
  return waitFor('an answer', async () => {
    await client.send(text)
    return client.answers.slice(before).find((answer) => answer.endsWith(`:${text}`))
  })
}

const metrics = async () => (await fetch(`http://${stats}/metrics`)).text()

const service = (targets: readonly number[]) => [
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'dns' },
    spec: {
      ports: [
        { name: 'tcp', port: 53 },
        { name: 'udp', port: 53, protocol: 'UDP' },
      ],
    },
  },
  ...targets.map((target, at) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `dns-${at}`, labels: { 'kubernetes.io/service-name': 'dns' } },
    addressType: 'IPv4',
    ports: [
      { name: 'tcp', port: 1 },
      { name: 'udp', port: target, protocol: 'UDP' },
    ],
    endpoints: [{ addresses: ['127.0.0.1'] }],
  })),
]

const upstreams = {
  a: useFixture(() => startUdpUpstream('a')),
  b: useFixture(() => startUdpUpstream('b')),
}
const port = await freePorts('udp', 'gone', 'service', 'nowhere')
const stats = `127.0.0.1:${await freePort()}`
const running = useGateway(async () => {
  const listeners = Object.entries(port).map(([name, number]) => ({
    name,
    port: number,
    protocol: 'UDP',
  }))
  return {
    args: ['--stats-address', stats],
    env: { SLUICE_UDP_IDLE_TIMEOUT: '1s', SLUICE_UDP_MAX_SESSIONS: '4' },
    manifests: {
      'gateway.yaml': manifest(
        gateway(0, { listeners }),
        staticBackend('a', upstreams.a.port),
        staticBackend('b', upstreams.b.port),
        staticBackend('gone', await freePort()),
      ),
      'route.yaml': manifest(streamRoute('UDPRoute', 'udp', 'udp', [toBackend('a')])),
      'gone.yaml': manifest(
        streamRoute('UDPRoute', 'gone', 'gone', [toBackend('gone')]),
        streamRoute('UDPRoute', 'nowhere', 'nowhere', [toBackend('nowhere')]),
        {
          apiVersion: 'sluice.dev/v1alpha1',
          kind: 'GatewayBackend',
          metadata: { name: 'nowhere' },
          spec: { static: { host: 'nowhere.invalid', port: 53 } },
        },
      ),
      'service.yaml': manifest(
        ...service([upstreams.a.port]),
        streamRoute('UDPRoute', 'service', 'service', [{ name: 'dns', port: 53 }]),
      ),
    },
  }
})

afterAll(() => {
  for (const client of clients) client.close()
})

describe('a UDPRoute', () => {
  it('keeps each client on one upstream session, and returns the answers', async () => {
    const [one, two] = [newClient(port.udp), newClient(port.udp)]
    expect(await ask(one, '1')).toBe('a:1')
    expect(await ask(two, '2')).toBe('a:2')
    expect(await ask(one, '3')).toBe('a:3')
    // Each client has an address of its own at the backend.
    expect(upstreams.a.clients.size).toBe(2)
    expect(one.answers.some((answer) => answer.endsWith(':2'))).toBe(false)
    expect(await metrics()).toMatch(/^sluice_downstream_connections\{.*protocol="udp"\} [1-4]$/m)
  })

  it('ends the session of an idle client, and logs it', async () => {
    const client = newClient(port.udp)
    await ask(client, 'last')
    const line = await waitFor('the line', () =>
      running.stdout
        .split('\n')
        .find((text) => text.includes('route=default/udp') && text.includes(`:${client.port} `)),
    )
    expect(line).toMatch(
      / gateway=default\/edge listener=udp route=default\/udp endpoint=127.0.0.1:\d+ src.addr=127.0.0.1:\d+ protocol=udp bytes.received=\d+ bytes.sent=\d+ duration=\d+ms$/,
    )
    await waitFor('the end of all sessions', async () =>
      /^sluice_downstream_connections\{.*protocol="udp"\} 0$/m.test(await metrics()),
    )
    const before = upstreams.a.clients.size
    expect(await ask(client, 'again')).toBe('a:again')
    expect(upstreams.a.clients.size).toBe(before + 1)
  })

  it('sends the next datagram to a changed backend', async () => {
    const client = newClient(port.udp)
    expect(await ask(client, 'x')).toBe('a:x')
    running.write('route.yaml', manifest(streamRoute('UDPRoute', 'udp', 'udp', [toBackend('b')])))
    await waitFor('the other backend', async () => (await ask(client, 'y')) === 'b:y')
    running.write('route.yaml', manifest(streamRoute('UDPRoute', 'udp', 'udp', [toBackend('a')])))
    await waitFor('the first backend', async () => (await ask(client, 'z')) === 'a:z')
  })

  it('uses the UDP port of a Service, and leaves a removed endpoint', async () => {
    const client = newClient(port.service)
    expect(await ask(client, '1')).toBe('a:1')
    running.write(
      'service.yaml',
      manifest(
        ...service([upstreams.b.port]),
        streamRoute('UDPRoute', 'service', 'service', [{ name: 'dns', port: 53 }]),
      ),
    )
    await waitFor('the other endpoint', async () => (await ask(client, '2')) === 'b:2')
  })

  it('ends the session if the backend port is closed', async () => {
    const client = newClient(port.gone)
    await waitFor('the line', async () => {
      await client.send('anybody')
      return running.stdout
        .split('\n')
        .find((text) => text.includes('route=default/gone') && text.includes('ECONNREFUSED'))
    })
  })

  it('ends the session if the backend name does not resolve', async () => {
    const client = newClient(port.nowhere)
    await waitFor('the line', async () => {
      await client.send('anybody')
      return running.stdout
        .split('\n')
        .find((text) => text.includes('route=default/nowhere') && text.includes('nowhere.invalid'))
    })
  })

  it('limits the number of sessions, and counts dropped datagrams', async () => {
    await waitFor('the end of earlier sessions', async () =>
      /^sluice_downstream_connections\{.*protocol="udp"\} 0$/m.test(await metrics()),
    )
    const four = Array.from({ length: 4 }, () => newClient(port.udp))
    await Promise.all(four.map((client) => ask(client, 'in')))
    const fifth = newClient(port.udp)
    await waitFor('a dropped datagram', async () => {
      await Promise.all([fifth.send('out'), ...four.map((client) => client.send('on'))])
      return /^sluice_datagrams_dropped_total\{reason="sessions"\} [1-9]/m.test(await metrics())
    })
    expect(fifth.answers).toEqual([])
    // There is room again once one of the others is silent.
    expect(await ask(fifth, 'later')).toBe('a:later')
  })

  it('closes the port when its listener is removed', async () => {
    const listeners = [{ name: 'udp', port: port.udp, protocol: 'UDP' }]
    running.write(
      'gateway.yaml',
      manifest(gateway(0, { listeners }), staticBackend('a', upstreams.a.port)),
    )
    await waitFor('the port', async () => {
      const socket = createSocket('udp4')
      const bound = once(socket.bind(port.gone, '127.0.0.1'), 'listening')
      return bound.then(
        () => socket.close(),
        () => undefined,
      )
    })
    expect(await ask(newClient(port.udp), 'still')).toBe('a:still')
  })
})

describe('several workers', () => {
  it.runIf(process.platform === 'linux')(
    'share a UDP port, and refuse to share it with other processes',
    async () => {
      const own = await freePort()
      const several = await startGateway({
        args: ['--workers', '2'],
        manifests: {
          'all.yaml': manifest(
            gateway(0, { listeners: [{ name: 'udp', port: own, protocol: 'UDP' }] }),
            staticBackend('a', upstreams.a.port),
            streamRoute('UDPRoute', 'udp', 'udp', [toBackend('a')]),
          ),
        },
      })
      const many = Array.from({ length: 12 }, () => newClient(own))
      const answers = await Promise.all(many.map((client, at) => ask(client, `${at}`)))
      expect(answers).toEqual(many.map((_, at) => `a:${at}`))
      await several.dispose()
    },
  )
})
