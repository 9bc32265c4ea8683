/** Sign-in at providers that cannot be used: the policy says why, and recovers by itself. */
import { expect, it } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { waitFor } from '../support/wait-for.ts'

const upstream = useUpstream()
const port = await freePort()
const unused = await freePort()
const good = useFixture(startScriptedProvider)
const down = useFixture(startScriptedProvider)
const renamed = useFixture(startScriptedProvider)
const keyless = useFixture(startScriptedProvider)

const guarded = (name: string, oidc: object) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy(name, `HTTPRoute/${name}`, { traffic: { oidc: { clientId: 'app', ...oidc } } }),
]

const running = useGateway(() => {
  down.reset({ isDown: true })
  renamed.reset({ metadata: { issuer: 'https://other.example.com' } })
  keyless.reset({ metadata: { jwks_uri: `${keyless.issuer}/none` } })
  return {
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      staticBackend('idp', down.port),
      ...guarded('good', { issuer: good.issuer }),
      ...guarded('down', { issuer: down.issuer }),
      ...guarded('through', { issuer: 'http://idp.example.com', backendRef: toBackend('idp') }),
      ...guarded('renamed', { issuer: renamed.issuer }),
      ...guarded('keyless', { issuer: keyless.issuer }),
      ...guarded('absent', {
        issuer: 'http://idp.example.com',
        authorizationEndpoint: 'http://idp.example.com/authorize',
        tokenEndpoint: 'http://idp.example.com/token',
        jwksURI: `http://127.0.0.1:${unused}/keys`,
      }),
    ],
  }
})

const acceptedOf = (name: string) => running.condition('GatewayPolicy', name, 'Accepted', 'True')

it('is a condition of the policy that says what is wrong, until the provider can be used', async () => {
  const broken = (name: string) =>
    waitFor(`the problem of ${name}`, async () => {
      const condition = await acceptedOf(name)
      return condition.reason === 'PartiallyValid' ? condition.message : undefined
    })
  expect(await broken('down')).toContain(
    `spec.traffic.oidc.issuer: ${down.issuer}/.well-known/openid-configuration responds with 503; new sign-ins fail until this works`,
  )
  expect(await broken('through')).toContain('openid-configuration responds with 503')
  expect(await broken('renamed')).toContain(
    'the metadata names another issuer: "https://other.example.com"',
  )
  expect(await broken('keyless')).toContain(`${keyless.issuer}/none responds with 404`)
  expect(await broken('absent')).toMatch(/:\d+\/keys cannot be fetched: /)
  expect(await acceptedOf('good')).toMatchObject({ reason: 'Valid' })

  down.reset()
  renamed.reset()
  for (const name of ['down', 'renamed']) {
    await waitFor(`${name} to recover`, async () => {
      const condition = await acceptedOf(name)
      return condition.reason === 'Valid' ? condition : undefined
    })
  }
  const { stdout } = await sluice('status', '--log-file', running.logFile)
  expect(stdout).toContain(`${keyless.issuer}/none responds with 404`)
})
