import { modelUsage } from '../../models/models.ts'
import { hasSeries } from '../../state/series.ts'
import { useServed } from '../../state/served.ts'
import { CountTable } from '../../ui/count-table.tsx'
import { Offered } from '../../ui/offered.tsx'
import { Content } from '../../ui/states.tsx'
import { Budgets } from './budgets.tsx'
import { Spend } from './spend.tsx'

const everyMs = 5_000
const usageColumns = [
  'Route',
  'Model',
  'Provider',
  'Requests',
  'Input tokens',
  'Output tokens',
  'Cost',
  'Cache hits',
]

/** Models: how much they are used, which providers are ejected, and what guards have found. */
export function Models() {
  return (
    <article>
      <header class="title">
        <h1>Models &amp; money</h1>
      </header>
      {hasSeries() && <Spend />}
      <Budgets />
      <p class="quiet">The tables below are since the proxy started.</p>
      <Offered
        offer="metrics"
        otherwise="Open the console of a gateway, or the one that `sluice run` prints."
      >
        <Usage />
      </Offered>
    </article>
  )
}

function Usage() {
  const shown = useServed(
    'models',
    async (server, signal) => modelUsage(await server.metrics(signal)),
    everyMs,
  )
  return (
    <Content shown={shown} what="models">
      {({ usage, spend, ejected, guards }) => (
        <>
          <CountTable
            title="Usage"
            columns={usageColumns}
            names={3}
            rows={usage}
            none="No request to a model has ended yet."
          />
          <CountTable
            title="Spend since the start"
            columns={['Dimension', 'Value', 'Requests', 'Tokens', 'Cost']}
            names={2}
            rows={spend}
            none="No request to a model has been billed yet."
          />
          <CountTable
            title="Ejected providers"
            columns={['Backend', 'Provider', 'Reason', 'Workers now', 'Ejections']}
            names={3}
            rows={ejected}
            none="No provider has been ejected."
          />
          <CountTable
            title="Guards"
            columns={['Phase', 'Guard', 'Action', 'Times']}
            names={3}
            rows={guards}
            none="No prompt guard has decided yet."
          />
        </>
      )}
    </Content>
  )
}
