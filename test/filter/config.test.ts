import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import {
  type FilterConfigOptions,
  filterConfig,
} from '../../src/tools/cli/filter-config/filter-config.ts'
import { manifestsFor } from './manifests.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-filter-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function print(manifests: readonly object[], output: FilterConfigOptions['output'] = 'json') {
  const file = join(folder, 'manifests.json')
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests }))
  const lines: string[] = []
  const options = { file: [file], output, module: '/etc/envoy/sluice-filter.wasm' }
  const answer = await filterConfig(options, (line) => lines.push(line))
  const text = answer.text().join('\n')
  return { exitCode: answer.exitCode, lines, text, value: parse(text) }
}

const guard = { request: [{ regex: { builtins: ['Email'], action: 'Reject' } }] }

describe('sluice filter-config', () => {
  it('prints guards, limits and header changes in the words of the policies', async () => {
    const traffic = {
      rateLimit: { local: [{ tokens: 100, unit: 'Minutes', burst: 5 }] },
      headerModifiers: { request: { set: [{ name: 'x-a', value: 'b' }] } },
    }
    const { exitCode, value, lines } = await print(
      manifestsFor({ ai: { promptGuard: guard }, traffic }),
    )
    expect(lines).toEqual([])
    expect(exitCode).toBe(0)
    const [rule] = value.rules
    expect(rule).toMatchObject({
      name: 'default/chat/0',
      match: { path: { type: 'PathPrefix', value: '/' } },
      rateLimit: { local: [{ tokens: 100, unit: 'Minutes', burst: 5 }] },
      headerModifiers: { request: { set: [{ name: 'x-a', value: 'b' }] } },
    })
    expect(rule.ai.promptGuard.request).toEqual([
      {
        regex: { builtins: ['Email'], action: 'Reject' },
        response: {
          message: 'The request was rejected due to inappropriate content',
          statusCode: 403,
        },
      },
    ])
    expect(rule.ai.routes).toContainEqual({
      ending: '/v1/chat/completions',
      type: 'Completions',
    })
  })

  it('puts more specific matches first', async () => {
    const paths = ['/', '/v1', '/v1/chat'].map((value) => ({ path: { type: 'PathPrefix', value } }))
    const exact = { path: { type: 'Exact', value: '/x' } }
    const pattern = { path: { type: 'RegularExpression', value: '/v1/chat/long.*' } }
    const { value } = await print(manifestsFor({ matches: [pattern, ...paths, exact] }))
    const order = value.rules.map(
      (rule: { match: { path: { value: string } } }) => rule.match.path.value,
    )
    expect(order).toEqual(['/x', '/v1/chat', '/v1', '/', '/v1/chat/long.*'])
  })

  it.each([
    [
      'a service that judges prompts',
      { ai: { promptGuard: { request: [{ vendorAModeration: {} }] } } },
      'error: GatewayBackend default/model: backend.ai.promptGuard.request[0].vendorAModeration: the filter calls no services',
    ],
    [
      'a policy that it does not know',
      { traffic: { csrf: { additionalOrigins: ['https://a.example'] } } },
      'error: GatewayPolicy default/limits: traffic.csrf: not supported by the filter',
    ],
    [
      'a query that decides about protections',
      {
        ai: { promptGuard: guard },
        matches: [{ queryParams: [{ name: 'a', value: 'b' }] }],
      },
      'error: HTTPRoute default/chat: rules[0].matches[0].queryParams: the filter does not match queries',
    ],
  ])('exits with 1 and names %s', async (_, options, line) => {
    const { exitCode, lines } = await print(manifestsFor(options))
    expect(lines).toContain(line)
    expect(exitCode).toBe(1)
  })

  it('names what is not a protection, and exits with 0', async () => {
    const { exitCode, lines } = await print(
      manifestsFor({
        ai: { modelAliases: { fast: 'gpt' } },
        traffic: { timeouts: { request: '5s' } },
      }),
    )
    expect(lines).toEqual([
      'note: GatewayPolicy default/limits: traffic.timeouts: configure it in Envoy',
      'note: GatewayBackend default/model: backend.ai.modelAliases: not done by the filter',
    ])
    expect(exitCode).toBe(0)
  })

  it.each([
    [
      undefined,
      'routes: not set; requests fail with 400 unless their path ends with /chat/completions, /v1/messages, /v1/messages/count_tokens, /responses, /embeddings',
    ],
    [
      { '/v1/chat/completions': 'Completions', '*': 'Passthrough' },
      "routes['*']: requests to other paths pass without guards",
    ],
  ])('names the paths that guards do not read with the routes %o', async (routes, line) => {
    const { exitCode, lines } = await print(manifestsFor({ ai: { promptGuard: guard, routes } }))
    expect(lines).toEqual([`note: GatewayBackend default/model: backend.ai.${line}`])
    expect(exitCode).toBe(0)
  })

  it('asks for one Gateway if a manifest could attach to several', async () => {
    const text = JSON.stringify(manifestsFor({}))
    const other = JSON.parse(text.replaceAll('"edge"', '"other"').replaceAll('"chat"', '"more"'))
    const both = [...manifestsFor({}), ...other.slice(0, 2)]
    await expect(print(both, 'wasmplugin')).rejects.toThrow(
      'choose one of default/edge, default/other with --gateway',
    )
    expect((await print(both)).value.rules).toHaveLength(2)
  })

  it('exits with 1 if there is no route', async () => {
    const { exitCode, lines } = await print([])
    expect([exitCode, lines]).toEqual([1, ['error: no HTTP route of a Gateway was found']])
  })

  it('prints an HTTP filter for Envoy that fails closed', async () => {
    const { value } = await print(manifestsFor({}), 'envoy')
    const { config } = value.typed_config
    expect(config.failure_policy).toBe('FAIL_CLOSED')
    expect(config.vm_config.code.local.filename).toBe('/etc/envoy/sluice-filter.wasm')
    expect(JSON.parse(config.configuration.value)).toMatchObject({ holdHeaders: true })
  })

  it('prints manifests for Istio and for Envoy Gateway that fail closed', async () => {
    const istio = await print(manifestsFor({}), 'wasmplugin')
    expect(istio.value).toMatchObject({
      kind: 'WasmPlugin',
      spec: { failStrategy: 'FAIL_CLOSE', url: 'file:///etc/envoy/sluice-filter.wasm' },
    })
    expect(istio.value.spec.targetRefs).toMatchObject([{ kind: 'Gateway', name: 'edge' }])
    expect(istio.value.spec.pluginConfig.rules).toHaveLength(1)
    const { value } = await print(manifestsFor({}), 'envoygateway')
    expect(value.kind).toBe('EnvoyExtensionPolicy')
    expect(value.spec.wasm[0]).toMatchObject({ failOpen: false })
    expect(value.spec.wasm[0].config.holdHeaders).toBeUndefined()
  })
})
