import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../test/support/wait-for.ts'
import type { JsonObject } from '../../ground/base/json-object.ts'
import { secretPlaceholder } from '../../ground/secrets/placeholder.ts'
import { secretPaths } from '../api/fields.ts'
import { validateObject } from '../api/validate.ts'
import { openEmbeddedLog } from '../log/index.ts'
import { DigestKey, openDigestKey, randomDigestKey } from './digest-key.ts'
import { FileSource } from './files.ts'
import { redact } from './redact.ts'
import { ResourceIndex } from './resource-index.ts'

const digestKey = new DigestKey(new Uint8Array(32).fill(7))
const options = { digestKey, secretPaths }

describe('redacting an object', () => {
  it('removes status, identity, managedFields and the last-applied annotation, and nothing else', () => {
    const object = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name: 'a',
        namespace: 'b',
        uid: 'u',
        resourceVersion: '1',
        generation: 2,
        managedFields: [{}],
        creationTimestamp: '2026-01-02T03:04:05Z',
        labels: { team: 'x' },
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', keep: 'me' },
      },
      spec: { ports: [{ port: 80 }] },
      status: { loadBalancer: {} },
    }
    expect(redact(object, options)).toEqual({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name: 'a',
        namespace: 'b',
        creationTimestamp: '2026-01-02T03:04:05Z',
        labels: { team: 'x' },
        annotations: { keep: 'me' },
      },
      spec: { ports: [{ port: 80 }] },
    })
  })

  it('replaces inline secrets with placeholders at any depth', () => {
    const policy = {
      kind: 'GatewayPolicy',
      spec: {
        backend: { auth: { key: 'hunter2' } },
        traffic: { basicAuthentication: { realm: 'r', users: ['a:{SHA}x', 'b:{SHA}y'] } },
      },
    }
    expect(redact(policy, options)).toMatchObject({
      spec: {
        backend: { auth: { key: secretPlaceholder(digestKey.digest('hunter2')) } },
        traffic: {
          basicAuthentication: {
            realm: 'r',
            users: ['a:{SHA}x', 'b:{SHA}y'].map((line) =>
              secretPlaceholder(digestKey.digest(line)),
            ),
          },
        },
      },
    })
  })

  it.each([
    ['spec.a.b', '{"a":{"b":"HIDDEN"},"list":[{"c":"y"},{"c":"z"}],"map":{"k":{"c":"w"}}}'],
    ['spec.a', '{"a":{"b":"HIDDEN"},"list":[{"c":"y"},{"c":"z"}],"map":{"k":{"c":"w"}}}'],
    ['spec.list', '{"a":{"b":"x"},"list":[{"c":"HIDDEN"},{"c":"HIDDEN"}],"map":{"k":{"c":"w"}}}'],
    [
      'spec.list[].c',
      '{"a":{"b":"x"},"list":[{"c":"HIDDEN"},{"c":"HIDDEN"}],"map":{"k":{"c":"w"}}}',
    ],
    ['spec.map{}.c', '{"a":{"b":"x"},"list":[{"c":"y"},{"c":"z"}],"map":{"k":{"c":"HIDDEN"}}}'],
    ['spec.list.c', '{"a":{"b":"x"},"list":[{"c":"y"},{"c":"z"}],"map":{"k":{"c":"w"}}}'],
    ['b', '{"a":{"b":"x"},"list":[{"c":"y"},{"c":"z"}],"map":{"k":{"c":"w"}}}'],
  ])('hides values at %s and below it', (path, expected) => {
    const spec = { a: { b: 'x' }, list: [{ c: 'y' }, { c: 'z' }], map: { k: { c: 'w' } } }
    const redacted = redact(
      { kind: 'K', spec },
      { digestKey, secretPaths: () => [{ path, holds: 'value' }] },
    )
    const text = JSON.stringify(redacted.spec).replaceAll(/secret:[0-9a-f]{32}/g, 'HIDDEN')
    expect(text).toBe(expected)
  })

  it('hides values of headers with the name of a credential only', () => {
    const change = (name: string, value: string) => ({
      requestHeaderModifier: { set: [{ name, value }], add: [{ name: 'x-plain', value }] },
    })
    const rules = [{ filters: [change('X-Api-Key', 'hunter2')] }]
    const { spec } = redact({ kind: 'HTTPRoute', spec: { rules } }, options)
    const { set, add } = (spec as { rules: typeof rules }).rules[0]?.filters[0]
      ?.requestHeaderModifier ?? { set: [], add: [] }
    expect(set).toEqual([
      { name: 'X-Api-Key', value: secretPlaceholder(digestKey.digest('hunter2')) },
    ])
    expect(add).toEqual([{ name: 'x-plain', value: 'hunter2' }])
  })

  it.each([
    ['"Bearer " + jwt["sub"]', 'HIDDEN + jwt["sub"]'],
    ['\'it\' + r\'x\\\' + """a"b"""', 'HIDDEN + HIDDEN + HIDDEN'],
    ['"a" // it\'s "kept"\n + "b"', 'HIDDEN // it\'s "kept"\n + HIDDEN'],
    ['request.headers["x-user"]', 'request.headers["x-user"]'],
  ])('hides the literals of the expression %s of a credential', (written, expected) => {
    const set = [
      { name: 'authorization', value: written },
      { name: 'x-plain', value: written },
    ]
    const traffic = {
      transformation: { request: { set } },
      extAuth: { http: { addRequestHeaders: { cookie: written, 'x-plain': written } } },
    }
    const redacted = redact({ kind: 'GatewayPolicy', spec: { traffic } }, options)
    const text = JSON.stringify(redacted).replaceAll(/\\"secret:[0-9a-f]{32}\\"/g, 'HIDDEN')
    const isHidden = (at: string) => JSON.stringify(at === 'x-plain' ? written : expected)
    expect(text).toContain(`{"name":"authorization","value":${isHidden('')}}`)
    expect(text).toContain(`{"name":"x-plain","value":${isHidden('x-plain')}}`)
    expect(text).toContain(`{"cookie":${isHidden('')},"x-plain":${isHidden('x-plain')}}`)
  })

  it('removes unknown fields of a Secret', () => {
    const redacted = redact({ kind: 'Secret', stringDate: { a: 'hunter2' } }, options)
    expect(JSON.stringify(redacted)).not.toContain('hunter2')
  })

  it('passes values to the secret store, by digest', () => {
    const kept = new Map<string, string>()
    const keepSecret = (digest: string, value: Uint8Array) => {
      kept.set(digest, Buffer.from(value).toString())
    }
    const secret = { kind: 'Secret', data: { a: 'aHVudGVyMg==' }, stringData: { b: 'plain' } }
    redact(secret, { ...options, keepSecret })
    redact(
      { kind: 'GatewayBackend', spec: { policies: { auth: { key: 'k' } } } },
      { ...options, keepSecret },
    )
    expect(kept).toEqual(
      new Map(['hunter2', 'plain', 'k'].map((value) => [digestKey.digest(value), value])),
    )
  })
})

describe('metadata about a Secret', () => {
  const entriesOf = (stringData: Record<string, string>) => {
    const secret: JsonObject = { kind: 'Secret', type: 'Opaque', stringData }
    const { facts, ...rest } = redact(secret, options) as { facts: { entries: JsonObject } }
    expect(rest).toEqual({ kind: 'Secret', type: 'Opaque', metadata: {} })
    expect(rest).not.toHaveProperty('stringData')
    return facts.entries
  }
  const fixture = (name: string) =>
    readFileSync(join(import.meta.dirname, 'fixtures', name), 'utf8')

  it('includes validity, names and dates of certificates, and whether keys match', () => {
    const entries = entriesOf({
      'tls.crt': fixture('server.crt'),
      'tls.key': fixture('server.key'),
      'other.key': fixture('other.key'),
      'ca.crt': `${fixture('server.crt')}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
    })
    const certificate = {
      isValid: true,
      names: ['shop.example', '*.shop.example', '192.0.2.1'],
      notBefore: expect.stringMatching(/^20\d\d-.*Z$/),
      notAfter: expect.stringMatching(/^2\d{3}-.*Z$/),
      isAuthority: false,
    }
    expect(entries).toMatchObject({
      'tls.crt': { certificates: [certificate] },
      'tls.key': { privateKey: { type: 'ec', pairsWith: ['tls.crt', 'ca.crt'] } },
      'other.key': { privateKey: { type: 'ec', pairsWith: [] } },
      'ca.crt': { certificates: [certificate, { isValid: false }] },
    })
  })

  it('marks a certificate with an invalid date as invalid', () => {
    const der = Buffer.from(fixture('server.crt').replace(/-----[^-]+-----|\s/g, ''), 'base64')
    // Thirteen is no month. Dates of certificates are UTCTime here (RFC 5280, 4.1.2.5.1).
    const date = der.indexOf(Buffer.from([0x17, 0x0d]))
    der.write('13', date + 4)
    const pem = `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`
    const entries = entriesOf({ 'tls.crt': pem, 'tls.key': fixture('server.key') })
    expect(entries).toMatchObject({
      'tls.crt': { certificates: [{ isValid: false }] },
      'tls.key': { privateKey: { type: 'ec', pairsWith: [] } },
    })
  })

  it('marks a damaged key as unreadable', () => {
    const entries = entriesOf({
      'tls.key': fixture('server.key').replace(/\n[A-Za-z0-9+/]{20}/, '\nAA'),
    })
    expect(entries['tls.key']).toMatchObject({ privateKey: { type: 'unreadable', pairsWith: [] } })
  })

  it('classifies every line of .htaccess', () => {
    const bcrypt = `$2y$05$${'a'.repeat(53)}`
    const lines = [
      '# users',
      `a:${bcrypt}`,
      'b:$apr1$salt$0123456789abcdefghijkl',
      'c:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=',
      'd:rqXexS6ZhobKA',
      '',
      'e:plain password',
      'no colon',
    ]
    const entries = entriesOf({ '.htaccess': lines.join('\r\n') })
    expect(entries['.htaccess']).toMatchObject({
      htpasswd: [
        { line: 2, hash: 'bcrypt' },
        { line: 3, hash: 'apr1' },
        { line: 4, hash: 'sha1' },
        { line: 5, hash: 'crypt' },
        { line: 7, hash: 'unsupported' },
        { line: 8, hash: 'malformed' },
      ],
    })
    expect(entriesOf({ other: 'a:b' }).other).not.toHaveProperty('htpasswd')
  })

  it.each([
    ['sk-123', 'plain'],
    ['{"key":"sk-123","metadata":{"group":"a"}}', 'json'],
    ['{"key":""}', 'json-without-key'],
    ['{"metadata":{}}', 'json-without-key'],
    ['{"key":', 'not-json'],
    [' \n', 'empty'],
  ])('classifies the API key entry %j as %s', (value, apiKey) => {
    expect(entriesOf({ entry: value }).entry).toMatchObject({ apiKey })
  })

  it('marks bytes that are not text as such', () => {
    const redacted = redact({ kind: 'Secret', data: { a: '/w==' } }, options)
    expect(redacted).toMatchObject({ facts: { entries: { a: { apiKey: 'not-text' } } } })
  })

  it('has the same digest for the same value, and another one with another digest key', () => {
    const entries = entriesOf({ a: 'same', b: 'same', c: 'else' }) as Record<
      string,
      { digest: string }
    >
    expect(entries.a?.digest).toBe(entries.b?.digest)
    expect(entries.a?.digest).not.toBe(entries.c?.digest)
    expect(randomDigestKey().digest('same')).not.toBe(entries.a?.digest)
  })
})

describe('the digest key and the log on disk', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-redact-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('keep the digest key across runs in a file that only its owner can read', () => {
    const file = join(folder, 'digest-key')
    const digest = openDigestKey(file).digest('value')
    expect(openDigestKey(file).digest('value')).toBe(digest)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('replace the digest key if its file is invalid', () => {
    const file = join(folder, 'digest-key')
    writeFileSync(file, 'short')
    const digest = openDigestKey(file).digest('value')
    expect(openDigestKey(file).digest('value')).toBe(digest)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('contain no secret value: neither of Secrets, nor inline, nor of refused objects', async () => {
    const values = [
      'hunter2-plain',
      'hunter2-data',
      'hunter2-inline',
      'hunter2-refused',
      'hunter2-typo',
    ]
    const manifests = [
      secret('a', { stringData: { key: values[0], json: `{"key":"${values[0]}"}` } }),
      secret('b', { data: { key: Buffer.from(values[1]!).toString('base64') } }),
      backend('c', { auth: { key: values[2] } }),
      backend('d', { auth: { key: values[3], unknown: true } }),
      secret('e', { stringDate: { key: values[4] } }),
    ]
    const path = join(folder, 'manifests.yaml')
    writeFileSync(path, manifests.map((object) => JSON.stringify(object)).join('\n---\n'))
    const { log } = openEmbeddedLog(join(folder, 'state', 'events.db'))
    const problems: unknown[] = []
    const source = new FileSource({
      paths: [path],
      digestKey: openDigestKey(join(folder, 'state', 'digest-key')),
      validate: validateObject,
      secretPaths,
      clock: { now: () => 0 },
      onProblem: (problem) => problems.push(problem),
      onChange: async (events) => void (await log.append(events)),
    })
    await source.lead(new ResourceIndex('/sluice/test/files'))
    const seen: string[] = []
    for await (const { event } of log.read()) {
      if ('name' in event.data) seen.push(`${event.data.name} ${event.type.split('.').at(-2)}`)
    }
    expect(seen).toEqual(
      expect.arrayContaining(['a applied', 'b applied', 'c applied', 'd refused']),
    )
    const before = problems.length
    writeFileSync(path, `${JSON.stringify(manifests[0])}\n  hunter2: [`)
    await eventually(() => expect(problems.length).toBeGreaterThan(before))
    const files = readdirSync(join(folder, 'state'))
    const bytes = Buffer.concat(files.map((file) => readFileSync(join(folder, 'state', file))))
    const everything = bytes.toString('latin1') + JSON.stringify(problems)
    for (const value of values) {
      expect(everything).not.toContain(value)
      expect(everything).not.toContain(Buffer.from(value).toString('base64').slice(0, -4))
    }
    await source.close()
    await log.close()
  })
})

function secret(name: string, body: object): object {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name }, ...body }
}

function backend(name: string, policies: object): object {
  return {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'GatewayBackend',
    metadata: { name },
    spec: { static: { host: 'a.example', port: 80 }, policies },
  }
}
