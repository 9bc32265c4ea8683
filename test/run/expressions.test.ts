import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

const authorize = (...matchExpressions: string[]) => ({
  traffic: { authorization: { policy: { matchExpressions } } },
})

const log = (filter: string) => ({ frontend: { accessLog: { filter } } })

describe('length of an expression [type.CELExpression]', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** An expression of exactly this many characters. */
  const ofLength = (length: number) => `'${'x'.repeat(length - 2)}'`

  const validate = (expression: string) => {
    const file = join(folder, 'policy.yaml')
    writeFileSync(file, manifest(policy('long', 'HTTPRoute/any', authorize(expression))))
    return sluice('validate', '-f', file)
  }

  it.each([1, 16_384])('accepts %i characters', async (length) => {
    const { code, stderr } = await validate(length === 1 ? '1' : ofLength(length))
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('matchExpressions')])
  })

  it.each([0, 16_385])('refuses %i characters', async (length) => {
    const { code, stdout, stderr } = await validate(length === 0 ? '' : ofLength(length))
    expect(code).not.toBe(0)
    expect(stdout + stderr).toContain('spec.traffic.authorization.policy.matchExpressions[0]')
  })
})

const port = await freePort()

describe('an expression must be a Common Expression Language expression [type.CELExpression]', () => {
  const upstream = useUpstream('main')
  const running = useGateway(() => {
    const rules = [{ backendRefs: [toBackend('main')] }]
    return {
      manifests: [
        gateway(port),
        staticBackend('main', upstream.port),
        httpRoute('guarded', { hostnames: ['guarded.example.com'], rules }),
        policy(
          'guarded',
          'HTTPRoute/guarded',
          authorize('request.path == "/"', 'jwt.sub ==\n "a" && && true'),
        ),
        httpRoute('good', { hostnames: ['good.example.com'], rules }),
        policy('good', 'HTTPRoute/good', authorize('jwt.sub.startsWith("u-") || has(jwt.admin)')),
        policy('bad-log', 'Gateway/edge', log('request.path.beginsWith("/a")')),
        policy('good-log', 'Gateway/edge', log('response.code >= 400')),
        {
          apiVersion: 'sluice.dev/v1alpha1',
          kind: 'GatewayBackend',
          metadata: { name: 'tools' },
          spec: {
            mcp: {
              targets: [
                {
                  name: 'one',
                  static: {
                    host: '127.0.0.1',
                    port: upstream.port,
                    policies: { mcp: { authorization: { policy: { matchExpressions: ['('] } } } },
                  },
                },
              ],
            },
          },
        },
      ],
    }
  })

  it('reports in the condition which expression is invalid, why, and where', async () => {
    const condition = await running.condition('GatewayPolicy', 'guarded', 'Accepted', 'False')
    expect(condition.message).toContain(
      'spec.traffic.authorization.policy.matchExpressions[1]: unexpected && (line 2, column 9 of the expression)',
    )
    expect(condition.message).not.toContain('matchExpressions[0]:')
  })

  it('refuses requests that an invalid expression was meant to protect', async () => {
    const response = await running.send(port, { host: 'guarded.example.com' })
    expect(response.status).toBe(500)
    expect(upstream.received).toHaveLength(0)
  })

  it('reports nothing about a valid expression', async () => {
    const { ancestors } = (await running.status('GatewayPolicy', 'good')) as { ancestors: unknown }
    expect(JSON.stringify(ancestors)).not.toContain('matchExpressions')
    const logging = await running.status('GatewayPolicy', 'good-log')
    expect(JSON.stringify(logging)).not.toContain('accessLog.filter')
  })

  it('reports an unknown function in an access log, and requests still pass', async () => {
    const status = await running.status('GatewayPolicy', 'bad-log')
    expect(JSON.stringify(status)).toContain(
      'spec.frontend.accessLog.filter: unknown method beginsWith() (line 1, column 14 of the expression)',
    )
  })

  it('reports invalid expressions of a backend, however deeply nested', async () => {
    const condition = await running.condition('GatewayBackend', 'tools', 'Accepted', 'False')
    expect(condition.message).toContain(
      'spec.mcp.targets[0].static.policies.mcp.authorization.policy.matchExpressions[0]:',
    )
  })
})
