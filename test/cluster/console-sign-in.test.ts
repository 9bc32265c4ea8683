/** Who may use the console of a controller: RBAC of a real API server decides. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type ConsolePage, startPage } from '../console/browser.ts'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { TestCluster } from '../support/cluster.ts'
import { ControllerProcess } from '../support/controller.ts'
import { sluice } from '../support/gateway.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'

const parts = [...apiServerParts, 'gateway-api-crds', 'chromium'] as const

describeWithParts(parts, 'the console of a controller with --console-sign-in kubernetes', () => {
  let cluster: TestCluster
  let controller: ControllerProcess
  let page: ConsolePage | undefined
  let url = ''

  const rules = (verbs: readonly string[]) => [
    { apiGroups: ['sluice.dev'], resources: ['consoles'], verbs },
  ]
  /** A token of a service account, for an audience or the API server. */
  const tokenOf = async (name: string, audiences?: readonly string[]): Promise<string> => {
    const path = `/api/v1/namespaces/default/serviceaccounts/${name}/token`
    const { body } = await cluster.server.request('POST', path, { spec: { audiences } })
    return body.status.token
  }
  const ask = async (path: string, token?: string, method = 'GET', body?: string) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const response = await fetch(`${url}api/${path}`, { method, headers, ...(body && { body }) })
    return { status: response.status, text: await response.text() }
  }

  beforeAll(async () => {
    cluster = await new TestCluster(await startApiServer()).install()
    await cluster.account('reader', rules(['get']))
    await cluster.account('operator', rules(['get', 'update']))
    await cluster.account('stranger', [])
    controller = await new ControllerProcess({
      kubeconfig: cluster.server.kubeconfig,
      args: [
        '--console-address',
        '127.0.0.1:0',
        '--console-sign-in',
        'kubernetes',
        '--console-actions',
        'true',
      ],
    }).start()
    url = (await controller.said(/^console: (\S+)$/m))[1] ?? ''
  }, 150_000)
  afterAll(async () => {
    await page?.close()
    await controller?.dispose()
    await cluster?.server.stop()
  })

  it('prints an address without a token, and gives data only to users with the role', async () => {
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/)
    expect(await ask('about')).toMatchObject({ status: 401 })
    expect(await ask('about', 'wrong')).toMatchObject({ status: 401 })
    const forOthers = await tokenOf('reader', ['another-service'])
    expect(await ask('about', forOthers)).toMatchObject({ status: 401 })
    expect(await ask('about', await tokenOf('stranger'))).toEqual({
      status: 403,
      text: 'system:serviceaccount:default:stranger may not read here. Grant the verb get on consoles.sluice.dev.\n',
    })
    for (const audiences of [undefined, ['sluice-console']]) {
      const { status, text } = await ask('about', await tokenOf('reader', audiences))
      expect(status).toBe(200)
      const { person } = JSON.parse(text)
      expect(person).toBe('system:serviceaccount:default:reader')
    }
  })

  it('lets only users with the role operate act, and records who has acted', async () => {
    const freeze = (token: string) =>
      ask('actions/freeze', token, 'POST', JSON.stringify({ reason: 'year end' }))
    expect(await freeze(await tokenOf('reader'))).toEqual({
      status: 403,
      text: 'system:serviceaccount:default:reader may not operate here. Grant the verb update on consoles.sluice.dev.\n',
    })
    const { status, text } = await freeze(await tokenOf('operator'))
    expect([status, JSON.parse(text)]).toMatchObject([200, { exitCode: 0 }])
    const { stdout } = await sluice('rollback', '--log-file', controller.logFile)
    expect(stdout).toContain('(system:serviceaccount:default:operator: year end)')
    // A controller has no listeners to which requests could be sent.
    expect(await ask('send', await tokenOf('operator'), 'POST')).toMatchObject({ status: 404 })
  })

  it('asks for the token in the page, says why it is refused, and shows the state', async () => {
    page = await startPage(partPath('chromium'), url)
    const { page: shown } = page
    await shown.getByRole('heading', { name: 'Sign in' }).waitFor()
    const enter = async (token: string) => {
      await shown.getByLabel('Token').fill(token)
      await shown.getByRole('button', { name: 'Sign in' }).click()
    }
    await enter(await tokenOf('stranger'))
    await shown.getByRole('alert').filter({ hasText: 'may not read here' }).waitFor()
    await enter(await tokenOf('reader', ['sluice-console']))
    await shown.locator('.time-bar .source', { hasText: 'live' }).waitFor()
    await shown.getByRole('button', { name: 'Sign out' }).click()
    await shown.getByRole('heading', { name: 'Sign in' }).waitFor()
  })

  it('forgets within a minute what a revoked role allowed', async () => {
    const token = await tokenOf('reader')
    expect(await ask('about', token)).toMatchObject({ status: 200 })
    await cluster.setRules('reader', [])
    await waitFor('the refusal', async () => (await ask('about', token)).status === 403, 60_000)
    // Nothing that the process prints has a token.
    expect(controller.stderr).not.toContain(token)
    expect(readFileSync(controller.logFile).includes(token)).toBe(false)
  }, 90_000)
})
