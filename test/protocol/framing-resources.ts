import type { Resource, RouteFilter } from '../../src/ground/model/resources.ts'
import {
  cartRoute,
  listener,
  match,
  policy,
  route,
  service,
  slice,
  toService,
} from '../proxy/plane-resources.ts'
import type { Rig } from '../proxy/plane-rig.ts'
import type { FramingCase } from './framing-cases.ts'

/** What the request after each case is answered with. */
export const next = 'the next answer'

export interface Ports {
  readonly upstream: number
  readonly second: number
  readonly mirror: number
  readonly processor: number
}

function serviceOf(name: string, port: number, appProtocol: string): Resource[] {
  return [service(name, { ports: [{ name: 'http', port: 80, appProtocol }] }), slice(name, port)]
}

/** What the data plane of one case is made of. */
export function resourcesOf(one: FramingCase, rig: Rig, ports: Ports): Resource[] {
  const changed = { add: [], set: [] as { name: string; value: string }[], remove: [] as string[] }
  if (one.changes?.includes('set-length')) changed.set.push({ name: 'Content-Length', value: '7' })
  if (one.changes?.includes('set-coding'))
    changed.set.push({ name: 'Transfer-Encoding', value: 'chunked' })
  if (one.changes?.includes('set-connection'))
    changed.set.push({ name: 'Connection', value: 'content-length, transfer-encoding' })
  if (one.changes?.includes('remove-length'))
    changed.remove.push('content-length', 'transfer-encoding')
  const filters: RouteFilter[] = [
    { type: 'requestHeaders', changes: changed },
    { type: 'responseHeaders', changes: changed },
  ]
  if (one.changes?.includes('mirror'))
    filters.push({ type: 'mirror', target: toService('mirror'), numerator: 1, denominator: 1 })
  const name = one.upstream === '2' ? 'second' : 'one'
  const ofNext = { ...cartRoute, section: 'next' }
  return [
    listener(rig.port),
    ...serviceOf('one', ports.upstream, 'http'),
    ...serviceOf('second', ports.second, 'kubernetes.io/h2c'),
    ...serviceOf('mirror', ports.mirror, 'http'),
    ...serviceOf('processor', ports.processor, 'kubernetes.io/h2c'),
    route({ name: 'cart', ruleName: 'case', filters, to: [toService(name)] }),
    route({ name: 'cart', ruleIndex: 1, ruleName: 'next', matches: [match('/next')] }),
    policy(ofNext, 'directResponse', { status: 200, body: next }, { name: 'next' }),
    ...policiesOf(one),
  ]
}

function policiesOf(one: FramingCase): Resource[] {
  const target = { ...cartRoute, section: 'case' }
  const { by, newStatus, newAnswer, newMethod, newBody } = one
  const set = (fields: Record<string, string | undefined>) =>
    Object.entries(fields).flatMap(([name, value]) =>
      value === undefined ? [] : [{ name, value: `'${value}'` }],
    )
  const request = {
    set: set({ ':method': newMethod, 'content-length': newBody && '3' }),
    ...(newBody !== undefined && { body: `'${newBody}'` }),
  }
  const response = {
    set: set({ ':status': newStatus?.toString(), 'transfer-encoding': 'chunked' }),
    ...(newAnswer !== undefined && { body: `'${newAnswer}'` }),
  }
  const hasRequest = newMethod !== undefined || newBody !== undefined
  const transformation = {
    ...(hasRequest && { request }),
    ...(by === 'transformation' && { response }),
  }
  const all: Resource[] = []
  if (Object.keys(transformation).length > 0)
    all.push(policy(target, 'transformation', transformation, { name: 'transform' }))
  if (by === 'direct') {
    const direct = { status: newStatus ?? 200, body: newAnswer ?? '' }
    all.push(policy(target, 'directResponse', direct, { name: 'direct' }))
  }
  if (by === 'extProc' || by === 'immediate') {
    const backend = { type: 'service', namespace: 'shop', name: 'processor', port: 80 }
    const config = JSON.stringify({ target: backend })
    all.push(
      policy(
        target,
        'extProc',
        { backendRef: backend },
        { name: 'processor', config, configVersion: 1 },
      ),
    )
  }
  return all
}

/** A CONNECT is not made of a request. */
