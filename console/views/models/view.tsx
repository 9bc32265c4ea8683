import { modelUsage } from '../../models/models.ts'
import { loadPrices, moneyFormat } from '../../state/prices.ts'
import { useServed } from '../../state/served.ts'
import { CountTable } from '../../ui/count-table.tsx'
import { Offered } from '../../ui/offered.tsx'
import { Content, Failure } from '../../ui/states.tsx'

const everyMs = 5_000
const usageColumns = ['Route', 'Model', 'Provider', 'Requests', 'Input tokens', 'Output tokens']

/** Models: how much they are used, which providers are ejected, and what guards have found. */
export function Models() {
  return (
    <article>
      <header class="title">
        <h1>Models</h1>
        <span class="quiet">Since the proxy started; the moment above does not apply.</span>
      </header>
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
    async (server, signal) => {
      const { list, problem } = await loadPrices(server, signal)
      const money = list && moneyFormat(list.currency)
      return { ...modelUsage(await server.metrics(signal), list, money), list, problem }
    },
    everyMs,
  )
  return (
    <Content shown={shown} what="models">
      {({ usage, ejected, guards, list, problem }) => (
        <>
          {problem !== undefined && <Failure message={problem} />}
          <CountTable
            title="Usage"
            columns={list === undefined ? usageColumns : [...usageColumns, 'Cost']}
            names={3}
            rows={usage}
            none="No request to a model has ended yet."
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
