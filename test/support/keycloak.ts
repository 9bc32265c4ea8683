/** A real Keycloak with one realm, whose data is in memory. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { freePort } from './gateway.ts'
import { waitFor } from './wait-for.ts'

export interface Keycloak {
  readonly issuer: string
  /** Ends all sessions of a user, as an administrator does. */
  logOut(username: string): Promise<void>
  close(): Promise<void>
}

const admin = { username: 'admin', password: 'a-password-of-tests' }
/** How long it may take until Keycloak answers. */
export const startMs = 480_000

/** `folder` is that of a distribution that `kc.sh build` has prepared. `realm` is in the format of its exports. */
export async function startKeycloak(
  folder: string,
  realm: Readonly<Record<string, unknown>> & { readonly realm: string },
): Promise<Keycloak> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = spawn(
    join(folder, 'bin', 'kc.sh'),
    [
      'start',
      '--optimized',
      '--cache=local',
      '--http-enabled=true',
      '--http-host=127.0.0.1',
      `--http-port=${port}`,
      '--hostname-strict=false',
      '--log-level=warn',
    ],
    {
      // A group of its own, because the script starts Java.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        KC_BOOTSTRAP_ADMIN_USERNAME: admin.username,
        KC_BOOTSTRAP_ADMIN_PASSWORD: admin.password,
        JAVA_OPTS_KC_HEAP: '-Xms64m -Xmx512m',
      },
    },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      output += bytes.toString()
    })
  }
  const exited = once(child, 'exit')
  const close = async () => {
    if (child.exitCode !== null || child.pid === undefined) return
    process.kill(-child.pid, 'SIGKILL')
    await exited
  }
  try {
    await waitFor(
      'Keycloak',
      async () => {
        if (child.exitCode !== null) throw new Error(`Keycloak has ended: ${output}`)
        const answer = await fetch(`${url}/realms/master`).catch(() => undefined)
        return answer?.ok === true
      },
      startMs,
    )
    await call(url, 'POST', '', realm)
  } catch (error) {
    await close()
    throw error
  }
  const logOut = async (username: string) => {
    const users = await call(url, 'GET', `/${realm.realm}/users?username=${username}`)
    const [user] = (await users.json()) as { id: string }[]
    await call(url, 'POST', `/${realm.realm}/users/${user?.id}/logout`)
  }
  return { issuer: `${url}/realms/${realm.realm}`, logOut, close }
}

/** Calls the administration of realms. */
async function call(url: string, method: string, path: string, body?: object): Promise<Response> {
  const grant = { grant_type: 'password', client_id: 'admin-cli', ...admin }
  const answer = await fetch(`${url}/realms/master/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams(grant),
  })
  const { access_token: token } = (await answer.json()) as { access_token: string }
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const response = await fetch(`${url}/admin/realms${path}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!response.ok)
    throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response
}
