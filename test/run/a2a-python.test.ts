/** The official SDK for Python as client and as agent, over each binding of both versions. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, toBackend } from '../support/manifests.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import { deny, served } from './a2a-rig.ts'

const folder = join(import.meta.dirname, '..', 'support')
const environment = () => ({ ...process.env, PYTHONPATH: partPath('python-a2a') })

async function startAgent() {
  const child = spawn(partPath('python3'), [join(folder, 'a2a_python_agent.py')], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  const [http = 0, grpc = 0] = line.split(' ').map(Number)
  return { http, grpc, close: () => child.kill('SIGKILL') }
}

type Results = Record<string, Record<string, unknown>>

/** What the client prints for each binding and version. */
async function use(url: string, grpc: string): Promise<Results> {
  const args = [join(folder, 'a2a_python_client.py'), url, grpc]
  const { stdout } = await promisify(execFile)(partPath('python3'), args, { env: environment() })
  return JSON.parse(stdout)
}

describeWithParts(['python3', 'python-a2a'], 'the SDK for Python', () => {
  const agent = useFixture(startAgent)
  const listener = useFixture(async () => ({ port: await freePort() }))
  const running = useGateway(() => {
    const paths = ['/lf.a2a.v1.A2AService', '/a2a.v1.A2AService']
    const matches = paths.map((value) => ({ path: { type: 'PathPrefix', value } }))
    return {
      manifests: [
        gateway(listener.port),
        ...served('weather', { port: agent.http }),
        httpRoute('grpc', { rules: [{ matches, backendRefs: [toBackend('grpc')] }] }),
        {
          apiVersion: 'sluice.dev/v1alpha1',
          kind: 'GatewayBackend',
          metadata: { name: 'grpc' },
          spec: {
            a2a: { host: '127.0.0.1', port: agent.grpc },
            policies: { http: { version: 'HTTP2' }, a2a: deny('a2a.method == "ListTasks"') },
          },
        },
      ],
    }
  })

  it('gets the same through the gateway as from the agent, except for what is refused', async () => {
    const address = `127.0.0.1:${listener.port}`
    const [direct, through] = await Promise.all([
      use(`http://127.0.0.1:${agent.http}/`, `127.0.0.1:${agent.grpc}`),
      use(`http://${address}/agents/weather/`, address),
    ])
    expect(Object.keys(direct)).toHaveLength(6)
    for (const [name, { inner, listed, extended, ...same }] of Object.entries(direct)) {
      const { inner: refusal, listed: tasks, extended: card, ...others } = through[name] ?? {}
      expect(others, name).toEqual(same)
      expect(same, name).toMatchObject({
        stream: ['submitted', 'working', 'completed'],
        text: 'Sunny. ☀',
        canceled: ['submitted', 'working', 'working', 'TASK_STATE_CANCELED'],
      })
      expect(extended, name).toBe('weather, extended')
      if (name.startsWith('GRPC')) expect(card).toContain('not available over gRPC')
      else expect(card, name).toBe(extended)
      expect(inner, name).toBe('https://169.254.169.254/')
      // Over HTTP, this client reports the status of the refusal without its message.
      const message = name.startsWith('GRPC') ? 'not allowed' : '400'
      expect(refusal, name).toContain(message)
      if (name === 'GRPC 1.0') expect(tasks).toContain('not allowed')
      else expect(tasks, name).toEqual(listed)
    }
    const logged = (version: string) =>
      `a2a.method=SendStreamingMessage a2a.binding=GRPC a2a.version=${version}`
    await waitFor('both versions over gRPC in the access log', () =>
      ['0.3', '1.0'].every((version) => running.stdout.includes(logged(version))),
    )
  })
})
