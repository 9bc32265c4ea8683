// Signs in as a browser does, with the authorization code flow and PKCE, and prints the access token:
// login.mjs USER
import { createHash, randomBytes } from 'node:crypto'

const [user] = process.argv.slice(2)
const issuer = 'http://127.0.0.1:9106'
const client = { client_id: 'shop-app', redirect_uri: 'http://127.0.0.1/signed-in' }
const cookies = new Map()

/** Sends a request with the cookies, and keeps those of the response. */
async function send(url, form) {
  const response = await fetch(url, {
    redirect: 'manual',
    headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    ...(form && { method: 'POST', body: new URLSearchParams(form) }),
  })
  for (const line of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)
    cookies.set(name, value)
  }
  return response
}

/** Follows redirects to a page with a form, or back to the client. */
async function follow(response) {
  const location = response.headers.get('location')
  if (location === null) return response.url
  if (location.startsWith(client.redirect_uri)) return location
  return follow(await send(new URL(location, issuer)))
}

const metadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()
const verifier = randomBytes(32).toString('base64url')
const query = new URLSearchParams({
  ...client,
  response_type: 'code',
  scope: 'openid orders',
  code_challenge: createHash('sha256').update(verifier).digest('base64url'),
  code_challenge_method: 'S256',
})
const form = await follow(await send(`${metadata.authorization_endpoint}?${query}`))
const consent = await follow(await send(form, { prompt: 'login', login: user, password: 'any' }))
const back = await follow(await send(consent, { prompt: 'consent' }))
const tokens = await send(metadata.token_endpoint, {
  ...client,
  grant_type: 'authorization_code',
  code: new URL(back).searchParams.get('code'),
  code_verifier: verifier,
})
console.log((await tokens.json()).access_token)
