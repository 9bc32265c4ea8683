/** Policies that the schema refuses: their targets fail closed, and the status has the reason. */
import { beforeAll, describe, expect, it } from 'vitest'
import { registeredPolicies } from '../../src/gateway/policies/registry.ts'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

interface Case {
  readonly section: string
  readonly field: string
  readonly level: string
  readonly security: boolean
}

const levels: Readonly<Record<string, readonly string[]>> = {
  frontend: ['Gateway'],
  traffic: ['Gateway', 'listener', 'ListenerSet', 'entry', 'HTTPRoute', 'rule'],
  backend: ['Gateway', 'listener', 'HTTPRoute', 'rule', 'Service', 'GatewayBackend'],
}

const cases = registeredPolicies.flatMap(({ section, field, security }): Case[] =>
  (levels[section] ?? []).map((level) => ({ section, field, level, security })),
)

/** A case has a host name of its own, and everything on its way but the port. */
const nameOf = ({ section, field, level }: Case) => `${section}-${field}-${level}`.toLowerCase()
const hostOf = (one: Case) => `${nameOf(one)}.example`

const group = 'gateway.networking.k8s.io'

function objectsOf(one: Case, port: number, upstreamPort: number): object[] {
  const name = nameOf(one)
  const { level } = one
  const isSet = level === 'ListenerSet' || level === 'entry'
  const targets: Readonly<Record<string, string>> = {
    Gateway: `Gateway/${name}`,
    listener: `Gateway/${name}#http`,
    ListenerSet: `ListenerSet/${name}`,
    entry: `ListenerSet/${name}#entry`,
    HTTPRoute: `HTTPRoute/${name}`,
    rule: `HTTPRoute/${name}#main`,
    Service: `Service/${name}`,
    GatewayBackend: `GatewayBackend/${name}`,
  }
  const parent = isSet ? { group, kind: 'ListenerSet', name } : { name }
  const hostname = hostOf(one)
  const listeners = [{ name: 'http', port, protocol: 'HTTP', ...(!isSet && { hostname }) }]
  const allowedListeners = { namespaces: { from: 'Same' } }
  const backendRef = level === 'Service' ? { name, port: 80 } : toBackend(name)
  const rules = [{ name: 'main', backendRefs: [backendRef] }]
  const set = {
    apiVersion: `${group}/v1`,
    kind: 'ListenerSet',
    metadata: { name },
    spec: {
      parentRef: { name },
      listeners: [{ name: 'entry', port, protocol: 'HTTP', hostname }],
    },
  }
  const refused = { [one.section]: { [one.field]: { nonsense: true } } }
  return [
    gateway(port, { listeners, ...(isSet && { allowedListeners }) }, name),
    ...(isSet ? [set] : []),
    httpRoute(name, { parentRefs: [parent], hostnames: [hostname], rules }),
    // Credentials of its own do not stand in for another setting that is broken.
    staticBackend(
      name,
      upstreamPort,
      one.field === 'auth' ? undefined : { auth: { passthrough: {} } },
    ),
    ...(level === 'Service' ? service(name, [upstreamPort]) : []),
    policy(name, targets[level] ?? '', refused),
  ] as object[]
}
const upstream = useUpstream()
const port = await freePort()
const gw = useGateway(() => {
  const objects = cases.flatMap((one) => objectsOf(one, port, upstream.port))
  const documents = objects.map((object) => manifest(object as Record<string, unknown>))
  return { manifests: { 'all.yaml': documents.join('---\n') } }
})

beforeAll(async () => {
  return async () => {
    await gw.dispose()
    await upstream.close()
  }
})

describe('a policy that the schema refuses', () => {
  it.each(cases.map((one) => [one.level, one.section, one.field, one] as const))(
    '%s: %s.%s refuses requests if it protects something, and has no effect otherwise',
    async (_level, section, field, one) => {
      const { status, body } = await send(port, { host: hostOf(one) })
      if (!one.security) {
        expect(status).toBe(200)
        return
      }
      expect([status, body]).toEqual([500, 'a policy that covers this route cannot be enforced'])
      const line = await waitFor('the line of the access log', () =>
        gw.stdout.split('\n').find((text) => text.includes(hostOf(one))),
      )
      expect(line).toContain(`spec.${section}.${field}.nonsense: unknown field`)
      expect(line).not.toMatch(/TypeError|\bbug\b/)
    },
  )
})
