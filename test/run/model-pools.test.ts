/** Models that Pods of an InferencePool serve: the picker of the pool chooses the Pod of each request. */
import { beforeEach, describe, expect, it } from 'vitest'
import { type AskedPick, type Pick, startEndpointPicker } from '../support/endpoint-picker.ts'
import { useFixture } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  aiBackend,
  inferencePool,
  pod,
  policy,
  routeByPath,
  servedModel,
  service,
  toPool,
} from '../support/manifests.ts'
import { eventually } from '../support/wait-for.ts'
import { hello, urlOf, useServedModels } from './served-models-rig.ts'

const given: { pick: (asked: AskedPick) => Pick } = { pick: () => ({}) }
const picker = useFixture(() => startEndpointPicker((asked) => given.pick(asked)))
const [down, nobody] = [await freePort(), await freePort()]

const pooled = (name: string, pool = name) =>
  servedModel(name, {
    match: { model: name },
    provider: 'Custom',
    custom: { backendRef: toPool(pool), formats: [{ type: 'Completions' }] },
  })

/** Providers of GatewayBackends. */
const custom = (backendRef: object) => ({
  custom: { backendRef, formats: [{ type: 'Completions' }] },
})
const backend = (name: string, ai: object) => [aiBackend(name, { ...ai }), routeByPath(name)]

const models = await useServedModels(({ a, b, c }) => {
  const ports = [a.port, b.port, down]
  return [
    ...service('server', [a.port]),
    ...backend('of-service', { provider: custom({ name: 'server', port: 80 }) }),
    ...backend('of-pool', { provider: custom(toPool('llama')) }),
    ...backend('of-groups', {
      groups: [
        { providers: [{ name: 'empty', ...custom(toPool('empty')) }] },
        { providers: [{ name: 'server', ...custom({ name: 'server', port: 80 }) }] },
      ],
    }),
    ...backend('of-nothing', { provider: custom({ name: 'nothing', port: 80 }) }),
    pod('gpu-0', 'gpu', '127.0.0.1'),
    ...service('picker', [picker.port], { appProtocol: 'kubernetes.io/h2c' }),
    ...service('gone', [nobody], { appProtocol: 'kubernetes.io/h2c' }),
    inferencePool('llama', 'gpu', ports, { name: 'picker' }),
    pooled('llama'),
    policy('key', 'InferencePool/llama', { backend: { auth: { key: 'of-the-pool' } } }),
    inferencePool('balanced', 'gpu', ports.slice(0, 2), undefined),
    pooled('balanced'),
    inferencePool('closed', 'gpu', ports, { name: 'gone' }),
    pooled('closed'),
    inferencePool('empty', 'none', ports, { name: 'picker' }),
    pooled('empty'),
    inferencePool('unresolved', 'gpu', ports, { name: 'nowhere' }),
    pooled('unresolved'),
    pooled('missing'),
    servedModel('cloud', { provider: 'Anthropic', baseURL: urlOf(c) }),
    ...['llama', 'closed', 'empty'].map((name) =>
      servedModel(`${name}-or-cloud`, {
        virtualModel: {
          failover: {
            targets: [
              { modelRef: { name }, priority: 0 },
              { modelRef: { name: 'cloud' }, priority: 1 },
            ],
          },
        },
      }),
    ),
  ]
})
const { a, b } = models
const at = (port: number) => `127.0.0.1:${port}`
const lastAsked = () => picker.asked.at(-1)
const status = (model: string) =>
  models.textOf(model).catch((error: { status?: number }) => error.status)

beforeEach(() => {
  given.pick = () => ({ endpoints: at(b.port) })
})

describe('a model of an InferencePool [CustomModelConfig.backendRef]', () => {
  it('[ModelServerReference.kind] is served by the Pod that the picker names, which sees the request as the Pod gets it', async () => {
    expect(await models.textOf('llama')).toBe('from B')
    const asked = JSON.parse(lastAsked()?.body ?? '') as object
    expect(asked).toMatchObject({ model: 'llama', messages: hello })
    expect(lastAsked()?.headers[':path']).toBe('/v1/chat/completions')
    expect(lastAsked()?.subset).toContain(at(a.port))
    expect(lastAsked()?.headers.authorization).toBeUndefined()
    expect(b.calls[0]?.headers.authorization).toBe('Bearer of-the-pool')
    await eventually(() =>
      expect(models.running.stdout).toMatch(
        /gen_ai.request.model=llama .*inference.pool=default\/llama inference.pick=picked/,
      ),
    )
  })

  it('is served in other formats, whole and streamed', async () => {
    const client = models.anthropic()
    const asked = { model: 'llama', max_tokens: 9, messages: hello }
    const whole = await client.messages.create(asked)
    expect(whole.content).toMatchObject([{ type: 'text', text: 'from B' }])
    expect(JSON.parse(lastAsked()?.body ?? '')).not.toHaveProperty('system')
    const streamed = await client.messages.stream(asked).finalMessage()
    expect(streamed.content).toMatchObject([{ type: 'text', text: 'from B' }])
  })

  it('gets the body that the picker returns, at the next Pod if the first is unreachable', async () => {
    const body = JSON.stringify({ model: 'adapter', messages: hello })
    given.pick = () => ({ endpoints: `${at(down)},${at(a.port)}`, body })
    const before = picker.asked.length
    expect(await models.textOf('llama')).toBe('from A')
    expect(models.sentTo(a)).toEqual(['adapter'])
    expect(picker.asked.length).toBe(before + 1)
  })

  it('is balanced among the Pods if the pool has no picker', async () => {
    const before = picker.asked.length
    const found = new Set<unknown>()
    await eventually(async () => {
      found.add(await models.textOf('balanced'))
      expect(found.size).toBe(2)
    })
    expect(picker.asked.length).toBe(before)
  })

  it('fails if the picker cannot be reached or the pool has no Pod', async () => {
    expect(await status('closed')).toBe(503)
    expect(await status('empty')).toBe(503)
  })

  it('[FailoverVirtualModel.targets] is replaced by the next target if the picker refuses or fails, or if there is no Pod', async () => {
    given.pick = () => ({ status: 429 })
    expect(await status('llama')).toBe(429)
    expect(await status('llama-or-cloud')).toBe('from C')
    expect(await status('closed-or-cloud')).toBe('from C')
    expect(await status('empty-or-cloud')).toBe('from C')
    given.pick = () => ({ endpoints: at(down) })
    expect(await status('llama-or-cloud')).toBe('from C')
  })

  it('[ModelSpec.status] has a condition that says what is missing', async () => {
    expect(await status('missing')).toBe(500)
    expect(await status('unresolved')).toBe(500)
    const { stdout } = await sluice('status', '--log-file', models.running.logFile, '-o', 'json')
    const objects = (JSON.parse(stdout) as { objects: StatusOf[] }).objects
    const find = (kind: string, name: string, type: string) =>
      objects
        .find((one) => one.kind === kind && one.name === name)
        ?.status.parents[0]?.conditions.find((one) => one.type === type)
    const resolved = (name: string) => find('AgentgatewayModel', name, 'ResolvedRefs')
    expect(resolved('llama')).toMatchObject({ status: 'True' })
    expect(resolved('balanced')).toMatchObject({ status: 'True' })
    expect(resolved('missing')).toMatchObject({
      status: 'False',
      reason: 'BackendNotFound',
      message: expect.stringContaining('InferencePool default/missing does not exist'),
    })
    expect(resolved('unresolved')?.message).toContain('Service default/nowhere does not exist')
    expect(find('InferencePool', 'llama', 'Accepted')).toMatchObject({ status: 'True' })
  })
})

describe('a provider of a GatewayBackend [CustomConfig.backendRef]', () => {
  it('is a Service or an InferencePool of the namespace, also in groups', async () => {
    expect(await models.textOf('m', '/of-service')).toBe('from A')
    const before = picker.asked.length
    expect(await models.textOf('m', '/of-pool')).toBe('from B')
    expect(b.calls[0]?.headers.authorization).toBe('Bearer of-the-pool')
    expect(picker.asked.length).toBe(before + 1)
    expect(await models.textOf('m', '/of-groups')).toBe('from A')
    const client = models.openai('/of-service')
    const streamed = await client.responses.stream({ model: 'm', input: 'Hello' }).finalResponse()
    expect(streamed.output_text).toBe('from A')
  })

  it('is reported if it does not exist', async () => {
    const missing = models.textOf('m', '/of-nothing')
    await expect(missing).rejects.toMatchObject({ status: 503 })
    const { stdout } = await sluice('status', '--log-file', models.running.logFile, '-o', 'json')
    const { objects } = JSON.parse(stdout) as {
      objects: { kind: string; name: string; status: { conditions?: Condition[] } }[]
    }
    const accepted = (name: string) =>
      objects.find((one) => one.kind === 'GatewayBackend' && one.name === name)?.status.conditions
    for (const name of ['of-service', 'of-pool', 'of-groups']) {
      expect(accepted(name), name).toMatchObject([{ type: 'Accepted', status: 'True' }])
    }
    expect(accepted('of-nothing')).toMatchObject([
      { status: 'False', message: expect.stringContaining('Service default/nothing') },
    ])
  })
})

interface StatusOf {
  readonly kind: string
  readonly name: string
  readonly status: { readonly parents: { readonly conditions: Condition[] }[] }
}
interface Condition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}
