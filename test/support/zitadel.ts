/** The OpenID provider of zitadel's Go library, with data in memory. It has fixed users and the clients web and api. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from './gateway.ts'
import { waitFor } from './wait-for.ts'

export interface Zitadel {
  readonly port: number
  /** It ends with a slash. */
  readonly issuer: string
  close(): Promise<void>
}

/** The user and the secret of both clients. */
export const user = { username: 'test-user@localhost', password: 'verysecure' }
export const clientSecret = 'secret'

export async function startZitadel(program: string, redirectUri: string): Promise<Zitadel> {
  const port = await freePort()
  const issuer = `http://localhost:${port}/`
  const child = spawn(program, [], {
    stdio: 'ignore',
    env: { ...process.env, PORT: String(port), REDIRECT_URI: redirectUri },
  })
  const exited = once(child, 'exit')
  const close = async () => {
    if (child.exitCode === null) child.kill('SIGKILL')
    await exited
  }
  try {
    await waitFor('the provider', async () => {
      if (child.exitCode !== null) throw new Error('the provider has ended')
      const url = `${issuer}.well-known/openid-configuration`
      return (await fetch(url).catch(() => undefined))?.ok === true
    })
  } catch (error) {
    await close()
    throw error
  }
  return { port, issuer, close }
}
