import { generateKeyPairSync } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { createIoCore } from '../../src/engines/core/index.ts'
import { createDataPlane, type DataPlane } from '../../src/gateway/proxy/data-plane.ts'
import type { CertificateRef, Resource, SecretResource } from '../../src/ground/model/resources.ts'
import type { Certificate } from '../support/certificates.ts'
import { useAuthority } from '../support/fixture.ts'
import { listener } from './plane-resources.ts'

let plane: DataPlane
let sequence = 0

const authority = useAuthority()
const first = authority.issue(['first.test'])
const second = authority.issue(['second.test'])

beforeEach(async () => {
  const core = createIoCore({ memoryPages: 64 })
  const telemetry = {
    onDone: () => undefined,
    onBadHead: () => undefined,
    onStreamDone: () => undefined,
    onEjected: () => undefined,
    onHealthChange: () => undefined,
    onExport: () => undefined,
    onLookup: () => undefined,
    onCallout: () => undefined,
  }
  const settings = { destinations: { allow: [], refuse: [], loopback: true } }
  const engine = {
    call(): never {
      throw new Error('handshakes make no requests')
    },
    connect(): never {
      throw new Error('handshakes make no connections')
    },
  }
  plane = await createDataPlane({ core, head: core.createHead(), engine, telemetry, settings })
})

function apply(upserted: readonly Resource[], removed: readonly string[] = []) {
  sequence++
  const versioned = upserted.map((resource) => ({ version: `${sequence}`, resource }))
  return plane.apply({ sequence, upserted: versioned, removed }).rejected
}

const port = 443
const secretRef = (key: string, digest: string) => ({
  namespace: 'infra',
  name: 'cert',
  key,
  digest,
})
const pair = (name: string): CertificateRef => ({
  certificate: secretRef('tls.crt', `${name}-crt`),
  privateKey: secretRef('tls.key', `${name}-key`),
})
const secret = (digest: string, text: string): SecretResource => ({
  type: 'secret',
  key: `secret/${digest}`,
  digest,
  value: Buffer.from(text),
})
const values = (name: string, { certificate, key }: Certificate) => [
  secret(`${name}-crt`, certificate),
  secret(`${name}-key`, key),
]
const https = (section: string, hostname: string, ...names: string[]) =>
  listener(port, { section, hostname, protocol: 'HTTPS', tls: { certificates: names.map(pair) } })
const choiceOf = (name: string | undefined) => {
  const choice = plane.chooseTls(port, name)
  return choice === 'close' ? undefined : choice
}
const chosen = (name: string | undefined) => choiceOf(name)?.place.listener

describe('the listener of a TLS handshake', () => {
  it('is the exact name, then the longest wildcard, then the listener without a hostname', () => {
    const hostnames = ['a.example.com', '*.example.com', '*.deep.example.com', '']
    const listeners = hostnames.map((hostname, at) => https(`l${at}`, hostname, 'first'))
    expect(apply([...listeners, ...values('first', first)])).toEqual([])
    const names = ['a.example.com', 'A.Example.COM', 'b.example.com', 'x.y.example.com']
    expect(names.map(chosen)).toEqual(['l0', 'l0', 'l1', 'l1'])
    expect(['a.deep.example.com', 'deep.example.com'].map(chosen)).toEqual(['l2', 'l1'])
    // Addresses and names with a last dot are no host names (RFC 6066 3), and no listener's.
    const others = [
      'example.com',
      'other.test',
      '',
      '127.0.0.1',
      '::1',
      'a.example.com.',
      undefined,
    ]
    expect(others.map(chosen)).toEqual(others.map(() => 'l3'))
  })

  it('is none if no listener has the name, or none is TLS', () => {
    apply([https('a', 'a.example.com', 'first'), ...values('first', first)])
    apply([listener(port, { section: 'plain', hostname: '' })])
    const nobodys = ['b.example.com', 'a.example.com.', '127.0.0.1', undefined]
    expect(nobodys.map(chosen)).toEqual(nobodys.map(() => undefined))
    expect(plane.chooseTls(80, 'a.example.com')).toBeUndefined()
  })

  it('is none if the best match has no certificate, even if another listener matches', () => {
    apply([https('a', 'a.example.com'), https('all', '', 'first'), ...values('first', first)])
    expect(chosen('a.example.com')).toBeUndefined()
    expect(chosen('b.example.com')).toBe('all')
  })

  it('is replaced if the certificate changes, and kept if anything else changes', () => {
    const both = [...values('first', first), ...values('second', second)]
    apply([https('a', '', 'first'), ...both])
    const before = choiceOf('x')
    apply([https('b', 'b.example.com', 'first')])
    expect(plane.chooseTls(port, 'x')).toBe(before)
    apply([https('a', '', 'second')])
    const after = choiceOf('x')
    expect(after?.listener).toBe(before?.listener)
    expect(after?.contexts).not.toBe(before?.contexts)
    apply([https('a', '')])
    expect(plane.chooseTls(port, 'x')).toBeUndefined()
  })

  it('stays if a new certificate is unusable, and the change is rejected', () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const stranger = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    apply([https('a', '', 'first'), ...values('first', first)])
    const before = choiceOf('x')
    const wrong = values('wrong', { ...second, key: stranger })
    expect(apply([https('a', '', 'wrong'), ...wrong])).toEqual([
      {
        key: 'listener/Gateway/infra/edge/a',
        code: 'certificate_unusable',
        message: expect.stringMatching(/key values mismatch/),
      },
    ])
    expect(plane.chooseTls(port, 'x')).toBe(before)
  })

  it('is none if its client validation is unusable', () => {
    apply([https('a', '', 'first'), ...values('first', first)])
    expect(chosen('x')).toBe('a')
    const clients = { required: true, authorities: [{ secret: secretRef('ca.crt', 'unknown') }] }
    const tls = { certificates: [pair('first')], clients }
    const asking = listener(port, { section: 'a', hostname: '', protocol: 'HTTPS', tls })
    expect(apply([asking])).toMatchObject([{ code: 'certificate_unusable' }])
    expect(plane.chooseTls(port, 'x')).toBeUndefined()
    apply([https('a', '', 'first')])
    expect(chosen('x')).toBe('a')
  })

  it('is available once the Secret values arrive', () => {
    const waiting = https('a', '', 'first')
    expect(apply([waiting])).toMatchObject([
      { message: 'the value of tls.crt of Secret infra/cert is not known' },
    ])
    expect(chosen('x')).toBeUndefined()
    expect(apply([...values('first', first), waiting])).toEqual([])
    expect(chosen('x')).toBe('a')
  })

  it('is the next one with the hostname once the first is removed', () => {
    apply([https('a', '', 'first'), https('b', '', 'second')])
    apply([...values('first', first), ...values('second', second)])
    apply([https('a', '', 'first'), https('b', '', 'second')])
    expect(chosen('x')).toBe('a')
    apply([], ['listener/Gateway/infra/edge/a'])
    expect(chosen('x')).toBe('b')
  })
})
