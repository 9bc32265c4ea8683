/** Budgets: what is spent of each value, and what is left, as `sluice budgets list --values` prints it. */
import { served, useServed } from '../../state/served.ts'
import { useModel } from '../../state/worker-client.ts'
import { CountTable } from '../../ui/count-table.tsx'
import { Content } from '../../ui/states.tsx'
import { timeText } from '../../ui/times.tsx'

interface BudgetRow {
  readonly budget: string
  readonly value?: string
  readonly unit: string
  readonly limit: string
  readonly spent?: string
  readonly remaining?: string
  readonly resetsAt?: string
}

const everyMs = 10_000

/** Nothing is shown if there is no budget. */
export function Budgets() {
  const { value } = useModel('objects', { text: '', kind: 'GatewayBudget', health: '' })
  if (served.value?.about.offers.commands !== true || !value?.rows.length) return null
  return <BudgetTable />
}

function BudgetTable() {
  const shown = useServed(
    'budgets',
    async (server, signal) => {
      const { exitCode, output, reports } = await server.run('budgets', {}, signal)
      if (exitCode > 1) throw new Error(reports.join(' '))
      return (JSON.parse(output) as { budgets: BudgetRow[] }).budgets
    },
    everyMs,
  )
  return (
    <Content shown={shown} what="budgets">
      {(rows) => (
        <CountTable
          title="Budgets"
          columns={['Budget', 'Who', 'Begins anew', 'Limit', 'Spent', 'Left']}
          names={3}
          rows={rows.map(({ budget, value, unit, limit, spent, remaining, resetsAt }) => {
            const amount = (of: string | undefined) => (of === undefined ? '' : `${of} ${unit}`)
            const reset = resetsAt === undefined ? '' : timeText(resetsAt)
            return [budget, value ?? 'all', reset, amount(limit), amount(spent), amount(remaining)]
          })}
          none="Nothing was counted yet."
        />
      )}
    </Content>
  )
}
