import { fromBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { DeltaSchema } from '../../../proto/gen/resource_pb.ts'
import { portSection } from '../../ground/model/port-section.ts'
import type { PolicyResource, Resource } from '../../ground/model/resources.ts'
import { decodeDelta } from './decode.ts'
import { assembleDelta, encodeDelta, encodeResource } from './encode.ts'

describe('a change set on the wire', () => {
  it('[inference.pool] contains a 500 backend in place of a pool, for readers that do not know pools', () => {
    const resource = {
      type: 'stream',
      key: 'stream/HTTPRoute/ns/a',
      route: { kind: 'HTTPRoute', namespace: 'ns', name: 'a' },
      created: 0,
      order: 0,
      attachments: [],
      backends: [{ weight: 1, target: { type: 'pool', namespace: 'ns', name: 'models' } }],
    } as const
    const { upserted } = fromBinary(
      DeltaSchema,
      encodeDelta({ sequence: 1, upserted: [{ version: '1', resource }], removed: [] }),
    )
    const { kind } = upserted[0]?.resource ?? {}
    expect(kind?.case === 'stream' && kind.value.backends[0]?.target?.kind.case).toBe('invalid')
  })

  const service: Resource = {
    type: 'service',
    key: 'service/ns/a',
    namespace: 'ns',
    name: 'a',
    ports: [],
    publishNotReady: false,
  }

  it('reports a resource that cannot be decoded, and keeps the others', () => {
    const wrong = {
      type: 'listener',
      key: 'listener/Gateway/ns/gw/quic',
      gateway: { namespace: 'ns', name: 'gw' },
      owner: { kind: 'Gateway', namespace: 'ns', name: 'gw' },
      section: 'quic',
      port: 443,
      protocol: 'QUIC',
      hostname: '',
    } as unknown as Resource
    // Field 15 of Resource: a type from a later version.
    const later = Uint8Array.of(10, 1, 118, 18, 5, 10, 1, 107, 122, 0)
    const bytes = assembleDelta(
      7,
      [
        encodeResource({ version: '1', resource: wrong }),
        later,
        encodeResource({ version: '2', resource: service }),
      ],
      [],
    )
    expect(decodeDelta(bytes)).toStrictEqual({
      sequence: 7,
      upserted: [{ version: '2', resource: service }],
      removed: [],
      unreadable: [
        {
          key: 'listener/Gateway/ns/gw/quic',
          version: '1',
          code: 'resource_unreadable',
          message: 'Listener.protocol "QUIC" is not known to this version',
        },
        {
          key: 'k',
          version: 'v',
          code: 'resource_unreadable',
          message: 'Resource is of a type that this version does not know',
        },
      ],
    })
  })

  it('sends the port of a policy in a field, so that proxies that do not know it refuse all requests of the Gateway', () => {
    const target = { kind: 'Gateway', namespace: 'ns', name: 'gw' }
    const resource: PolicyResource = {
      type: 'policy',
      key: 'policy/frontend/ns/a/networkAuthorization/Gateway/ns/gw#port:8443',
      created: 1,
      order: 0,
      policy: { namespace: 'ns', name: 'a' },
      section: 'frontend',
      field: 'networkAuthorization',
      phase: 'PostRouting',
      target: { ...target, section: portSection(8443) },
      configVersion: 1,
      config: '{}',
    }
    const bytes = Buffer.from(
      encodeDelta({ sequence: 1, upserted: [{ version: '1', resource }], removed: [] }),
    )
    expect(decodeDelta(bytes).upserted).toStrictEqual([{ version: '1', resource }])
    // Field 4 of Target with the value 8443. A reader that does not know the field sees it like field 14.
    const at = bytes.indexOf(Buffer.of(4 << 3, 0xfb, 0x41))
    bytes.writeUInt8(14 << 3, at)
    const { upserted, unreadable } = decodeDelta(bytes)
    const unenforceable = expect.stringMatching(/has a field that this version does not know/)
    expect(upserted).toMatchObject([{ resource: { target, unenforceable } }])
    expect(upserted[0]?.resource).toHaveProperty('target', target)
    expect(unreadable).toMatchObject([{ key: resource.key, code: 'resource_unreadable' }])
  })

  it('is rejected if it is truncated', () => {
    const bytes = encodeDelta({
      sequence: 1,
      upserted: [{ version: '1', resource: service }],
      removed: [],
    })
    expect(() => decodeDelta(bytes.subarray(0, bytes.length - 1))).toThrow()
  })

  it('can be read from shared memory', () => {
    const delta = { sequence: 1, upserted: [{ version: 'é', resource: service }], removed: ['ü'] }
    const bytes = encodeDelta(delta)
    const shared = new Uint8Array(new SharedArrayBuffer(bytes.length))
    shared.set(bytes)
    expect(decodeDelta(shared)).toStrictEqual({ ...delta, unreadable: [] })
  })
})
