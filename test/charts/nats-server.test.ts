/** The NATS server that the chart installs, started with its rendered configuration. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { expect, it } from 'vitest'
import { useFixture } from '../support/fixture.ts'
import { freePort, startGateway } from '../support/gateway.ts'
import { only, template } from '../support/helm.ts'
import { aiBackend, gateway as edge, policy, routeByPath, secret } from '../support/manifests.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { startProgram } from '../support/program.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'

const passwords = { password: 'p-1', proxyPassword: 'p-2' }

async function startChartServer() {
  const objects = await template('sluice', { nats: { enabled: true, ...passwords } })
  const folder = mkdtempSync(join(tmpdir(), 'sluice-nats-chart-'))
  const given: string = only(objects, 'ConfigMap').data['nats.conf']
  // Ports of the machine, folders of a container and what servers before 2.10 do not know differ.
  const text = given
    .replace(/sync_interval: always/, '')
    .replace('0.0.0.0:4222', '127.0.0.1:-1')
    .replace('8222', '-1')
    .replace('/data', folder)
  const file = join(folder, 'nats.conf')
  writeFileSync(file, text)
  const { stringData } = only(objects, 'Secret', 'sluice-nats')
  const variables = {
    POD_NAME: 'sluice-nats-0',
    NATS_PASSWORD: stringData.password,
    NATS_PROXY_PASSWORD: stringData.proxyPassword,
  }
  const log = join(folder, 'log')
  const server = startProgram(partPath('nats-server'), ['-c', file], log, variables)
  const port = await waitFor('the port', () => {
    if (server.hasExited()) throw new Error(server.lastLines())
    const listening = /Listening for client connections on 127\.0\.0\.1:([0-9]+)/
    return listening.exec(server.lastLines(100))?.[1]
  })
  const at = (url: string) => url.replace(/@.*/, `@127.0.0.1:${port}`)
  return {
    given,
    url: at(stringData.url),
    proxyUrl: at(stringData.proxyUrl),
    anonymousUrl: `nats://127.0.0.1:${port}`,
    connectAs: (user: string, pass: string): Promise<NatsConnection> =>
      connect({ servers: `127.0.0.1:${port}`, user, pass, inboxPrefix: `_INBOX.${user}` }),
    stop: async () => {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

describeWithParts(['helm', 'nats-server'], 'the NATS server of the chart', () => {
  const server = useFixture(startChartServer)
  const model = useFixture(startVendorA)

  it('syncs every write, and requires a password', async () => {
    expect(server.given).toMatch(/^ *sync_interval: always$/m)
    const starts = startGateway({ manifests: {}, nats: server.anonymousUrl })
    await expect(starts).rejects.toThrow(/authorization/i)
  })

  it('lets its user for proxies share answers and publish records, but not read or write events', async () => {
    const port = await freePort()
    const gateway = await startGateway({
      nats: server.url,
      args: ['--record', 'all', '--record-nats', server.proxyUrl],
      env: { SLUICE_ANSWER_STORE: server.proxyUrl },
      manifests: [
        edge(port),
        secret('keys', { ann: 'key-of-ann' }),
        aiBackend(
          'own',
          { provider: { vendorA: {}, host: '127.0.0.1', port: model.port } },
          { ai: { cache: { ttl: '1h' } } },
        ),
        routeByPath('own'),
        policy('keys', 'HTTPRoute/own', {
          traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
        }),
      ],
    })
    const owner = await server.connectAs('sluice', passwords.password)
    const proxy = await server.connectAs('proxy', passwords.proxyPassword)
    try {
      const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'hi' }] })
      const headers = { 'content-type': 'application/json', authorization: 'Bearer key-of-ann' }
      const path = '/own/v1/chat/completions'
      expect((await gateway.send(port, { method: 'POST', path, headers, body })).status).toBe(200)
      const streams = (await jetstreamManager(owner)).streams
      const messagesOf = (name: string) =>
        streams.info(name).then(
          ({ state }) => state.messages,
          () => 0,
        )
      for (const stream of ['KV_sluice_answers', 'SLUICE_DECISIONS', 'SLUICE_EVENTS']) {
        await waitFor(stream, async () => (await messagesOf(stream)) > 0)
      }

      const refused = /permission/i
      const events = await messagesOf('SLUICE_EVENTS')
      await expect(jetstream(proxy).publish('sluice.local.Forged', '{}')).rejects.toThrow(refused)
      await expect(
        proxy.request('$JS.API.STREAM.MSG.GET.SLUICE_EVENTS', '{"seq":1}'),
      ).rejects.toThrow(refused)
      for (const subject of ['sluice.>', '_INBOX.sluice.>', '>']) {
        const read = (async () => {
          for await (const _ of proxy.subscribe(subject)) return
        })()
        await expect(read).rejects.toThrow(refused)
      }
      expect(await messagesOf('SLUICE_EVENTS')).toBe(events)
    } finally {
      await Promise.all([owner.close(), proxy.close(), gateway.dispose()])
    }
  })
})
