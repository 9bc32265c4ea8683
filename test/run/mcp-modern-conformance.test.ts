/** The scenarios of the official suite that revision 2026-07-28 requires of a server, through the gateway. */
import { beforeAll, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { mcpManifests } from '../support/mcp-client.ts'
import { startConformanceServer } from '../support/mcp-conformance-server.ts'
import { judgeServer } from '../support/mcp-conformance-suite.ts'
import { modernConformanceServer } from '../support/mcp-modern-conformance.ts'
import { describeWithParts } from '../support/parts.ts'

/** The suite runs the scenarios of the extension for tasks too, which no server here offers. */
const isOfExtension = (name: string) => name.startsWith('tasks-')

/** Scenarios that call tools which only a modern server can have. */
const onlyModern = [
  /^input-required-result-(basic-|request-state|multi|non-tool-request|result-type|tampered|capability)/,
  // Four of its checks need diagnostic tools.
  /^server-stateless$/,
  /^http-custom-header-server-validation$/,
]

describeWithParts(
  ['mcp-modern-conformance'],
  'the conformance suite of revision 2026-07-28',
  () => {
    const modern = useFixture(
      () => modernConformanceServer().start(),
      (server) => server.kill(),
    )
    const legacy = useFixture(startConformanceServer)
    const ports = { modern: 0, legacy: 0 }
    beforeAll(async () => {
      ports.modern = await freePort()
      ports.legacy = await freePort()
    })
    const serve = (name: keyof typeof ports, server: { readonly port: number }) =>
      useGateway(() => {
        const target = { name: 'only', static: { host: '127.0.0.1', port: server.port } }
        // The legacy server keeps sessions, which modern clients do not have.
        const sessionRouting = name === 'legacy' ? 'Stateless' : 'Stateful'
        const mcp = { targets: [target], sessionRouting }
        return { manifests: { 'all.yaml': mcpManifests(ports[name], { mcp }) } }
      })
    serve('modern', modern)
    serve('legacy', legacy)
    const failing = async (port: number) => {
      const results = await judgeServer('mcp-modern-conformance', port, [
        '--requirements',
        '2026-07-28',
      ])
      const scored = Object.entries(results).filter(([name]) => !isOfExtension(name))
      expect(scored.length).toBeGreaterThan(35)
      return scored.filter(([, verdict]) => !verdict.endsWith(' 0 failed')).map(([name]) => name)
    }

    it('passes with a modern server', async () => {
      expect(await failing(ports.modern)).toEqual([])
    }, 120_000)

    it('passes with a legacy server, except for scenarios that need tools of modern servers', async () => {
      const failed = await failing(ports.legacy)
      expect(failed.filter((name) => !onlyModern.some((one) => one.test(name)))).toEqual([])
      for (const one of onlyModern) expect(failed.some((name) => one.test(name))).toBe(true)
    }, 120_000)
  },
)
