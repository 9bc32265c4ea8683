import { linkTo } from '../../state/location.ts'
import { hasSeries } from '../../state/series.ts'
import { log } from '../../state/worker-client.ts'
import { Offered } from '../../ui/offered.tsx'
import { Agents } from './agents.tsx'
import { Calls, Messages } from './calls.tsx'
import { Servers } from './servers.tsx'
import { Versions } from './versions.tsx'

/** MCP servers with their tools, and A2A agents: who may see them, how much they are used, sessions, and what was decided. */
export function Tools() {
  return (
    <article>
      <header class="title">
        <h1>Tools</h1>
        <a href={linkTo('playground', [], { tab: 'tools' })}>Call a tool</a>
      </header>
      {log.value.count > 0 && <Versions />}
      {hasSeries() && <Servers />}
      {hasSeries() && <Agents />}
      <p class="quiet">The tables below are since the proxy started.</p>
      <Offered
        offer="metrics"
        otherwise="Open the console of a gateway, or the one that `sluice run` prints."
      >
        <Messages />
      </Offered>
      <Offered offer="decisions" otherwise="Calls of tools appear here if decisions are recorded.">
        <Calls />
      </Offered>
    </article>
  )
}
