/** What clients of A2A agents may do: authorization, and URLs for push notifications. */
import { ClientFactory, JsonRpcTransportFactory } from '@a2a-js/sdk/client'
import { describe, expect, it } from 'vitest'
import { useAgent, userMessage } from '../support/a2a-agent.ts'
import { recordsIn } from '../support/decision-records.ts'
import { useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { gateway } from '../support/manifests.ts'
import { deny, rpc, served } from './a2a-rig.ts'

const agent = useAgent()
const received: string[] = []
const elsewhere = useUpstream('elsewhere', (request, response) => {
  received.push(`${request.path} ${request.headers.authorization ?? ''}`)
  response.end('{}')
})
/** An agent that redirects every request. */
const moved = useUpstream('moved', (_, response) => {
  response.writeHead(307, { location: `http://127.0.0.1:${elsewhere.port}/stolen` }).end()
})
const port = await freePort()
const base = `http://127.0.0.1:${port}`
const folder = useFolder('sluice-a2a-protection-')
const running = useGateway(() => {
  const loopback = { addresses: ['127.0.0.0/8', '::1'], allowHttp: true }
  return {
    manifests: [
      gateway(port),
      ...served('weather', { port: agent.port }),
      ...served('moved', { port: moved.port }),
      ...served('trusting', { port: agent.port, pushNotifications: loopback }),
      ...served(
        'strict',
        { port: agent.port },
        deny('a2a.method == "CancelTask"', 'a2a.taskId == "secret"'),
      ),
    ],
    args: ['--record', 'all', '--record-dir', folder],
  }
})

describe('authorization [BackendA2A.authorization]', () => {
  it('refuses by method and task in both versions and bindings, in the form of the client', async () => {
    const before = agent.received.length
    const refusal = { error: { code: -32600, message: 'not allowed' }, id: 7 }
    expect(await rpc(`${base}/agents/strict`, 'CancelTask', { id: 'a' })).toMatchObject({
      status: 403,
      body: refusal,
    })
    expect(await rpc(`${base}/agents/strict`, 'tasks/cancel', { id: 'a' }, '0.3')).toMatchObject({
      body: refusal,
    })
    expect(await rpc(`${base}/agents/strict`, 'tasks/get', { id: 'secret' }, '0.3')).toMatchObject({
      body: refusal,
    })
    const rest = async (path: string, method = 'GET') => {
      const response = await fetch(`${base}/agents/strict/a2a/rest${path}`, { method })
      return [response.status, await response.text()]
    }
    const denied = [
      403,
      '{"error":{"code":403,"status":"PERMISSION_DENIED","message":"not allowed"}}',
    ]
    expect(await rest('/tasks/secret')).toEqual(denied)
    expect(await rest('/tenant/tasks/secr%65t')).toEqual(denied)
    expect(await rest('/v1/tasks/a:cancel', 'POST')).toEqual(denied)
    expect(await rest('/tasks/a:cancel/', 'POST')).toEqual(denied)
    expect((await rest('/tasks/a:cancel', 'PUT'))[0]).toBe(404)
    expect((await rest('/other'))[0]).toBe(404)
    expect(agent.received.length).toBe(before)
  })

  it('is explained for each method and route, under the names of any version', async () => {
    const explain = (...args: string[]) =>
      sluice('explain', 'agent', ...args, '--log-file', running.logFile)
    const { stdout } = await explain('default/strict')
    const rule =
      'Deny rule of GatewayBackend default/strict: a2a.method == "CancelTask" || a2a.taskId == "secret"'
    expect(stdout).toContain(
      `CancelTask\n  HTTPRoute default/strict rule 0: refused\n    ${rule} (true)\n`,
    )
    expect(stdout).toContain('GetTask\n  HTTPRoute default/strict rule 0: depends on the client\n')
    const one = await explain('default/weather', 'message/send', '-o', 'json')
    const route = { route: 'HTTPRoute default/weather rule 0', hosts: [], verdict: 'allowed' }
    expect(JSON.parse(one.stdout)).toEqual([
      { method: 'SendMessage', routes: [{ ...route, rules: [] }] },
    ])
    expect((await explain('default/none')).code).toBe(1)
    expect((await explain('default/weather', 'messages/send')).stderr).toContain(
      'A2A has no method messages/send; it has GetAgentCard, ',
    )
  })

  it('refuses bodies that the agent could read in another way', async () => {
    const before = agent.received.length
    const bodies = [
      '{"jsonrpc":"2.0","id":1,"method":"GetTask","method":"CancelTask","params":{"id":"a"}}',
      '{"jsonrpc":"2.0","id":1,"method":"GetTask","Method":"CancelTask","params":{"id":"a"}}',
      '[{"jsonrpc":"2.0","id":1,"method":"CancelTask","params":{"id":"a"}}]',
      '{"jsonrpc":"2.0","id":1',
      '',
    ]
    for (const body of bodies) {
      const response = await fetch(`${base}/agents/strict/a2a/rpc`, { method: 'POST', body })
      expect(response.status).toBe(400)
    }
    expect(agent.received.length).toBe(before)
  })
})

describe('push notifications [A2ABackend.pushNotifications, CVE-2026-111761]', () => {
  const config = (url: string) => ({ taskId: 't', id: 'c', url, token: '', tenant: '' })

  it.each([
    'http://93.184.215.14/hook',
    'https://127.0.0.1/hook',
    'https://localhost/hook',
    'https://2130706433/hook',
    'https://0x7f.1/hook',
    'https://[::ffff:169.254.169.254]/',
    'https://[fd00::1]/',
    'https://[64:ff9b::a9fe:a9fe]/',
    'https://169.254.169.254./latest',
    'https://10.0.0.1/',
    'https://user:pass@93.184.215.14/',
    'file:///etc/passwd',
    'no url',
  ])('refuses %s wherever a client names it', async (url) => {
    const before = agent.received.length
    const push = { url, token: 'x' }
    const message = { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'a' }] } }
    const asked: readonly (readonly [string, object])[] = [
      ['CreateTaskPushNotificationConfig', config(url)],
      ['tasks/pushNotificationConfig/set', { taskId: 't', pushNotificationConfig: push }],
      ['SendMessage', { ...message, configuration: { taskPushNotificationConfig: push } }],
      ['SendMessage', { ...message, configuration: { task_push_notification_config: push } }],
      ['message/stream', { ...message, configuration: { pushNotificationConfig: push } }],
    ]
    for (const [method, params] of asked) {
      const { status, body } = await rpc(`${base}/agents/weather`, method, params)
      expect([status, body.error?.code, body.error?.message]).toEqual([
        400,
        -32602,
        expect.stringContaining('URL for push notifications is not allowed'),
      ])
    }
    const rest = await fetch(`${base}/agents/weather/a2a/rest/tasks/t/pushNotificationConfigs`, {
      method: 'POST',
      body: JSON.stringify(config(url)),
    })
    expect(rest.status).toBe(400)
    expect(agent.received.length).toBe(before)
  })

  it('lets those pass that are public or allowed, and URLs in messages', async () => {
    const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory()] })
    const client = await factory.createFromUrl(`${base}/agents/trusting/`)
    const { id } = (await client.sendMessage(userMessage('hello'))) as { id: string }
    const set = (name: string, url: string) =>
      rpc(`${base}/agents/${name}`, 'CreateTaskPushNotificationConfig', {
        ...config(url),
        taskId: id,
      })
    expect(
      (await set('trusting', `http://localhost:${agent.port}/hook`)).body.error,
    ).toBeUndefined()
    expect((await set('weather', 'https://93.184.215.14/hook')).body.error).toBeUndefined()
    const part = { url: 'http://127.0.0.1/file' }
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [part] }
    expect(
      (await rpc(`${base}/agents/weather`, 'SendMessage', { message })).body.error,
    ).toBeUndefined()
  })

  it('[CVE-2026-111763] does not follow redirects of agents, nor call URLs for notifications', async () => {
    const url = `http://127.0.0.1:${elsewhere.port}/hook`
    const authentication = { scheme: 'Bearer', schemes: ['Bearer'], credentials: 'push-secret' }
    const params = { ...config(url), authentication }
    await rpc(`${base}/agents/trusting`, 'CreateTaskPushNotificationConfig', params)
    const response = await fetch(`${base}/agents/moved/a2a/rpc`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer client' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'GetTask', params: { id: 'a' } }),
      redirect: 'manual',
    })
    expect(response.status).toBe(307)
    expect(received).toEqual([])
  })

  it('[CVE-2026-111762] records no token and no credentials of an allowed or a refused URL', async () => {
    const secrets = {
      token: 'push-token',
      authentication: { scheme: 'Bearer', schemes: ['Bearer'], credentials: 'push-credentials' },
    }
    for (const url of ['https://93.184.215.14/hook?key=push-query', 'https://10.0.0.1/push-path']) {
      const params = { ...config(url), ...secrets }
      await rpc(`${base}/agents/weather`, 'CreateTaskPushNotificationConfig', params)
    }
    await running.stop()
    const records = [...recordsIn(folder).values()]
    expect(JSON.stringify(records)).toContain('CreateTaskPushNotificationConfig')
    expect(`${JSON.stringify(records)}${running.stdout}${running.stderr}`).not.toContain('push-')
  })
})
