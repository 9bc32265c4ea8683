/** Old events of the ledger are removed by themselves. */
import { expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { budget, gateway, httpRoute, staticBackend, toBackend } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const upstream = useUpstream()
const port = await freePort()
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    httpRoute('app', { rules: [{ backendRefs: [toBackend('main')] }] }),
    budget('app', 'HTTPRoute/app', {
      limit: { unit: 'Requests', amount: '3' },
      window: { unit: 'Month', timeZone: 'UTC' },
    }),
  ],
  env: { SLUICE_LEDGER_RETENTION: '1s' },
}))

const budgets = (command: string) =>
  sluice('budgets', command, '--log-file', running.logFile, '-o', 'json')
const firstPosition = async () => {
  const { stdout } = await sluice('log', '--log-file', `${running.logFile}.ledger`, '-o', 'json')
  const [first = ''] = stdout.split('\n').filter((line) => line.startsWith('{"position"'))
  return (JSON.parse(first) as { position: number }).position
}

it('removes old events of the ledger while the gateway runs, and keeps their sums', async () => {
  for (let at = 0; at < 2; at++) expect((await running.send(port)).status).toBe(200)
  await waitFor('the removal of events', () =>
    /removed \d+ events before 20\S+Z from the ledger/.test(running.stderr),
  )
  expect(await firstPosition()).toBeGreaterThan(1)
  await running.stop()
  await running.start()
  expect([(await running.send(port)).status, (await running.send(port)).status]).toEqual([200, 429])
  await waitFor('the charge', async () => {
    const [one] = JSON.parse((await budgets('list')).stdout).budgets
    return one.spent === '3'
  })
  expect((await budgets('verify')).code).toBe(0)
})
