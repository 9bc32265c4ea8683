/** What `sluice validate` and `sluice status` report about references to objects that no file defines. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, it } from 'vitest'
import { exitCode, UsageError } from '../../src/tools/cli/shared/output.ts'
import { status } from '../../src/tools/cli/status/status.ts'
import { validate } from '../../src/tools/cli/validate/validate.ts'
import { launcher } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, staticBackend } from '../support/manifests.ts'

const file = join(import.meta.dirname, 'references.yaml')
const folder = mkdtempSync(join(tmpdir(), 'sluice-references-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Place, object, field and message of every error and then of every warning in references.yaml. */
const errors = [
  '69:11: HTTPRoute default/app: status.parents[Gateway edge#http].ResolvedRefs: Service default/app has no TCP port 81',
  '60:7: HTTPRoute default/app: status.parents[Gateway edge#admin].Accepted: the parent has no listener named admin; it has http on port 8080, https on port 8443',
  '94:70: GatewayPolicy default/clients: status.Attached: Gateway default/edge has no listener admin; it has http, https',
]
const warnings = [
  '16:13: Gateway default/edge: spec.listeners[1].tls.certificateRefs[0].name: Secret default/certificate is not in these files',
  '18:66: Gateway default/edge: spec.infrastructure.parametersRef.name: GatewayParameters default/sizes is not in these files',
  '24:3: Gateway default/other: spec.gatewayClassName: GatewayClass misspelt is not in these files',
  '61:7: HTTPRoute default/app: spec.parentRefs[2].name: Gateway default/missing-gateway is not in these files',
  '63:7: HTTPRoute default/app: spec.parentRefs[3].name: ListenerSet default/missing-set is not in these files',
  '70:11: HTTPRoute default/app: spec.rules[0].backendRefs[2].name: Service default/missing-service is not in these files',
  '72:24: HTTPRoute default/app: spec.rules[0].backendRefs[3].namespace: no ReferenceGrant of namespace elsewhere in these files permits HTTPRoute objects of default to refer to Service far',
  '74:54: HTTPRoute default/app: spec.rules[0].backendRefs[5].name: GatewayBackend default/missing-backend is not in these files',
  '75:70: HTTPRoute default/app: spec.rules[0].backendRefs[6].name: InferencePool default/missing-pool is not in these files',
  '79:27: HTTPRoute default/app: spec.rules[0].filters[0].requestMirror.backendRef.name: Service default/missing-mirror is not in these files',
  '85:18: TCPRoute default/unattached: spec.parentRefs[0].name: Gateway default/missing-gateway is not in these files',
  '86:29: TCPRoute default/unattached: spec.rules[0].backendRefs[0].name: Service default/missing-service is not in these files',
  '93:60: GatewayPolicy default/clients: spec.targetRefs[0].name: HTTPRoute default/missing-route is not in these files',
  '97:20: GatewayPolicy default/clients: spec.traffic.apiKeyAuthentication.secretRef.name: Secret default/keys is not in these files',
  '104:50: GatewayPolicy default/clients: spec.traffic.jwtAuthentication.providers[0].jwks.remote.backendRef.name: Service elsewhere/issuer is not in these files',
  '104:64: GatewayPolicy default/clients: spec.traffic.jwtAuthentication.providers[0].jwks.remote.backendRef.namespace: no ReferenceGrant of namespace elsewhere in these files permits GatewayPolicy objects of default to refer to Service issuer',
  '108:29: GatewayPolicy default/clients: spec.backend.tls.caCertificateRefs[0].name: ConfigMap default/authorities is not in these files',
  '117:7: GatewayPolicy default/selected: spec.targetSelectors[0].matchLabels: no HTTPRoute of namespace default in these files has team=a',
  '121:9: GatewayPolicy default/selected: spec.traffic.apiKeyAuthentication.secretSelector.matchLabels: no Secret of namespace default in these files has team=a, use=keys',
  '127:44: BackendTLSPolicy default/secure: spec.targetRefs[0].name: Service default/missing-service is not in these files',
  '130:55: BackendTLSPolicy default/secure: spec.validation.caCertificateRefs[0].name: ConfigMap default/authorities is not in these files',
  '139:20: GatewayBackend default/models: spec.policies.auth.secretRef.name: Secret default/model-key is not in these files',
  '147:24: InferencePool default/pool: spec.endpointPickerRef.name: Service default/picker is not in these files',
  '153:16: ListenerSet default/more: spec.parentRef.name: Gateway default/missing-gateway is not in these files',
]

const validated = (strict: boolean, ...paths: string[]) =>
  validate({ file: paths, output: 'text', strict }, () => undefined)

describe('sluice validate', () => {
  it('warns of each reference that leads nowhere, at the line and column of its field', async () => {
    const { text } = await validated(false, file)
    const marked = warnings.map((line) => line.replace(': ', ': warning: '))
    expect(text()).toEqual([...errors, ...marked].map((line) => `${file}:${line}`))
  })

  it('warns of nothing in the examples but the missing service that one of them is about', async () => {
    const { text } = await validated(false, join(import.meta.dirname, '../../examples'))
    const references = text().filter((line) => line.endsWith(' in these files'))
    expect(references).toEqual([
      expect.stringMatching(/fail-closed\/.* Service default\/doorkeeper /),
    ])
  })

  it('exits with 1 for a reference that leads nowhere only if --strict is set', async () => {
    const route = join(folder, 'route.yaml')
    writeFileSync(route, manifest(httpRoute('app', { rules: [{}] })))
    expect((await validated(false, route)).exitCode).toBe(exitCode.success)
    expect((await validated(true, route)).exitCode).toBe(exitCode.negative)
    const edge = join(folder, 'edge.yaml')
    writeFileSync(edge, manifest(gateway(8080)))
    const { exitCode: code, text } = await validated(true, route, edge)
    expect([code, text()]).toEqual([exitCode.success, []])
  })

  it('prints warnings as JSON beside the errors of an object', async () => {
    const { json } = await validated(false, file)
    const { objects } = json as { objects: { name: string; errors: []; warnings: [] }[] }
    expect(objects.find(({ name }) => name === 'unattached')).toMatchObject({
      errors: [],
      warnings: [
        {
          path: 'spec.parentRefs[0].name',
          message: 'Gateway default/missing-gateway is not in these files',
          file,
          line: 85,
          column: 18,
        },
        { path: 'spec.rules[0].backendRefs[0].name', line: 86, column: 29 },
      ],
    })
    const found = objects.flatMap((object) => [...object.errors, ...object.warnings])
    expect(found).toHaveLength(errors.length + warnings.length)
  })

  it('does not warn of missing objects if a file is unreadable, since it may define them', async () => {
    const broken = join(folder, 'broken.yaml')
    writeFileSync(broken, '{')
    const { text, exitCode: code } = await validated(false, file, broken)
    expect(code).toBe(exitCode.usage)
    expect(text().filter((line) => line.includes(': warning: '))).toEqual([])
  })

  it('names standard input as the file of errors from conditions and of warnings', () => {
    const input = readFileSync(file, 'utf8')
    const { stdout } = spawnSync(launcher, ['validate', '-f', '-'], { input, encoding: 'utf8' })
    const lines = stdout.trim().split('\n')
    expect(lines).toHaveLength(errors.length + warnings.length)
    for (const line of lines) expect(line).toMatch(/^\(standard input\):\d+:\d+: /)
  })

  it('reads standard input that arrives in pieces', async () => {
    const child = spawn(launcher, ['validate', '-f', '-'], { stdio: ['pipe', 'pipe', 'inherit'] })
    const { stdin } = child
    const write = (piece: string) => new Promise((resolve) => stdin.write(piece, resolve))
    // An empty pipe was once taken for an error, so each piece is written after the one before was read.
    for (const line of readFileSync(file, 'utf8').split(/(?<=\n)/)) await write(line)
    stdin.end()
    const lines = (await text(child.stdout)).trim().split('\n')
    expect(lines).toHaveLength(errors.length + warnings.length)
  })
})

describe('sluice status', () => {
  it('reports the same warnings on standard error and in its JSON', async () => {
    const reported: string[] = []
    const { json, exitCode: code } = await status({ file: [file] }, (text) => reported.push(text))
    expect(code).toBe(exitCode.success)
    expect(reported).toHaveLength(warnings.length)
    expect(reported[0]).toBe(`${file}:${warnings[0]?.replace(': ', ': warning: ')}`)
    const { warnings: listed } = json as { warnings: unknown[] }
    expect(listed).toHaveLength(warnings.length)
    expect(listed[0]).toEqual({
      file,
      line: 16,
      column: 13,
      kind: 'Gateway',
      namespace: 'default',
      name: 'edge',
      path: 'spec.listeners[1].tls.certificateRefs[0].name',
      message: 'Secret default/certificate is not in these files',
    })
  })

  it('exits with 1 for a warning if --strict is set, and refuses --strict for a log', async () => {
    const strict = await status({ file: [file], strict: true }, () => undefined)
    expect(strict.exitCode).toBe(exitCode.negative)
    const whole = join(folder, 'whole.yaml')
    writeFileSync(whole, manifest(gateway(8080), staticBackend('app', 8081)))
    const { exitCode: code } = await status({ file: [whole], strict: true }, () => undefined)
    expect(code).toBe(exitCode.success)
    const ofLog = status({ logFile: file, strict: true }, () => undefined)
    await expect(ofLog).rejects.toThrow(UsageError)
  })
})
