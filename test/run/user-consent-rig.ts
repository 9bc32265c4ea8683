/** Users, a service with an authorization server of its own, and gateways that act at the service for the users. */
import { expect } from 'vitest'
import { useFixture, useUpstream } from '../support/fixture.ts'
import { inSeconds, keySetOf, sign } from '../support/identity-provider.ts'
import {
  gateway,
  httpRoute,
  manifest,
  mcpBackend,
  policy,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { Browser } from '../support/sign-in-browser.ts'

/** Where users sign in, and where the service asks them. */
export const people = useFixture(startScriptedProvider)
export const service = useFixture(startScriptedProvider)
export const upstream = useUpstream('service')

export const host = 'app.localhost'
export const pageOf = (port: number, name: string) => `http://${host}:${port}/consent/${name}`
export const sealingKeys = (entries: Record<string, string>) => secret('sealing', entries)

const consent = (port: number, name: string, more: object = {}) => ({
  auth: {
    oauthUserConsent: {
      issuer: service.issuer,
      clientAuth: { clientId: 'app', secretRef: { name: 'client' } },
      redirectURI: pageOf(port, name),
      displayName: `the <${name}>`,
      scopes: ['read'],
      ...more,
    },
  },
})

/** Programs use `api.localhost` with tokens; the pages are at `app.localhost`. */
export function manifestsFor(
  port: number,
  mcpPorts: Readonly<Record<string, number>> = {},
  joint: Readonly<Record<string, Record<string, unknown>>> = {},
) {
  const keys = { inline: JSON.stringify(keySetOf(people.key)) }
  const providers = [{ issuer: people.issuer, jwks: keys }]
  const at = (name: string, path = `/${name}`) => ({
    matches: [{ path: { value: path } }],
    backendRefs: [toBackend(name)],
  })
  return manifest(
    gateway(port),
    secret('client', { clientSecret: 'app-secret' }),
    secret('session', { one: 's'.repeat(40) }),
    staticBackend(
      'service',
      upstream.port,
      consent(port, 'service', { sealingKeysRef: { name: 'sealing' } }),
    ),
    // The same service for another purpose.
    staticBackend(
      'other',
      upstream.port,
      consent(port, 'other', { sealingKeysRef: { name: 'sealing' } }),
    ),
    // The same service with tokens that are bound to a key.
    staticBackend('bound', upstream.port, consent(port, 'bound', { dpop: true })),
    ...Object.entries(mcpPorts).map(([name, own]) =>
      mcpBackend(name, [
        {
          name: 'only',
          static: { host: '127.0.0.1', port: own, policies: consent(port, name) },
        },
      ]),
    ),
    // The same server twice: once as it is, and once with the tokens of users. The name begins with its own.
    ...Object.entries(joint).map(([name, more]) => {
      const place = { host: '127.0.0.1', port: mcpPorts[name.split('-', 1)[0] ?? ''] }
      const policies = consent(port, name)
      return mcpBackend(
        name,
        [
          { name: 'open', static: place },
          { name: 'shut', static: { ...place, policies } },
        ],
        more,
      )
    }),
    httpRoute('pages', { hostnames: [host], rules: [{ backendRefs: [toBackend('service')] }] }),
    policy('pages', 'HTTPRoute/pages', {
      traffic: {
        oidc: {
          issuer: people.issuer,
          clientId: 'app',
          sessionKeysRef: { name: 'session' },
        },
        consentPages: {},
      },
    }),
    httpRoute('programs', {
      hostnames: ['api.localhost'],
      rules: [at('service', '/'), at('other'), at('bound')],
    }),
    httpRoute('mcp', { rules: Object.keys({ ...mcpPorts, ...joint }).map((name) => at(name)) }),
    policy('mcp', 'HTTPRoute/mcp', { traffic: { jwtAuthentication: { providers } } }),
    policy('programs', 'HTTPRoute/programs', { traffic: { jwtAuthentication: { providers } } }),
  )
}

/** The token that a program of a user has. */
export const tokenOf = (sub: string) =>
  sign(people.key, { iss: people.issuer, sub, iat: inSeconds(-1) })

export async function browserOf(user: string, port: number): Promise<Browser> {
  people.behaviour.user = user
  const browser = new Browser()
  await browser.open(`http://${host}:${port}/`)
  return browser
}

/** Opens a link in the browser of a user, and presses the button. */
export async function allow(browser: Browser, link: string, as = 'ann') {
  service.behaviour.user = as
  const asked = await browser.open(link)
  expect(asked.status).toBe(200)
  return browser.open(link, { method: 'POST' })
}

/** What programs of users do at a gateway. */
export function programsAt(port: number) {
  const call = async (user: string, path = '/', at = port, address?: string) =>
    new Browser().copy(address).send(`http://api.localhost:${at}${path}`, {
      headers: { authorization: `Bearer ${await tokenOf(user)}` },
    })
  const linkOf = async (user: string, path = '/', at = port) => {
    const response = await call(user, path, at)
    expect(response.status).toBe(401)
    return (JSON.parse(response.body) as { consent_url: string }).consent_url
  }
  const allowed = async (user: string, path = '/') =>
    allow(await browserOf(user, port), await linkOf(user, path), user)
  return { call, linkOf, allowed }
}

/** The Authorization field that the service got. */
export const authorizationOf = (body: string) =>
  (JSON.parse(body) as { headers: Record<string, string> }).headers.authorization
