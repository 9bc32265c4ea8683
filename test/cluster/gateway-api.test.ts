import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kinds } from '../../src/control/api/kinds.ts'
import { caseTitle } from '../api/cases/case.ts'
import { gatewayApiTable, gatewayGroup, gatewayObject } from '../api/gateway-api-table.ts'
import { type ApiServer, apiServerParts, startApiServer } from '../support/api-server.ts'
import { installCrds, readCrds } from '../support/crds.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

/** Where objects of a kind are posted to be judged and not stored. */
function dryRunPath(kind: string): string {
  const row = kinds.find((one) => one.kind === kind)
  const place = row?.namespaced ? 'namespaces/default/' : ''
  return `/apis/${gatewayGroup}/v1/${place}${row?.plural}?dryRun=All&fieldValidation=Strict`
}

describeWithParts(
  [...apiServerParts, 'gateway-api-crds'],
  'a cluster with the experimental Gateway API',
  () => {
    let server: ApiServer
    beforeAll(async () => {
      server = await startApiServer()
      const crds = readCrds(join(partPath('gateway-api-crds'), 'experimental'))
      await installCrds(
        server,
        crds.filter((crd) => crd.spec.group === gatewayGroup),
      )
    }, 150_000)
    afterAll(() => server?.stop())

    describe.each(Object.entries(gatewayApiTable))('%s', (kind, rows) => {
      it.each(rows.map((row) => [caseTitle(row), row] as const))(
        '%s, as offline validation does',
        async (_, { spec, refusedAt }) => {
          const { status } = await server.request(
            'POST',
            dryRunPath(kind),
            gatewayObject(kind, spec),
          )
          // Unknown fields are 400, broken rules 422.
          const expected = refusedAt === undefined ? [201] : [400, 422]
          expect(expected).toContain(status)
        },
      )
    })
  },
)
