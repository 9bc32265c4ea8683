import { place, setParams } from '../../state/location.ts'
import { CallTool } from './call-tool.tsx'
import { Chat } from './chat.tsx'
import { Expressions } from './expressions.tsx'
import { Masks } from './masks.tsx'
import { RateLimits } from './rate-limits.tsx'

const tabs = [
  { id: 'masks', title: 'Masks and tokens', Tab: Masks },
  { id: 'expressions', title: 'Expressions', Tab: Expressions },
  { id: 'limits', title: 'Rate limits', Tab: RateLimits },
  { id: 'chat', title: 'Chat', Tab: Chat },
  { id: 'tools', title: 'Tools', Tab: CallTool },
] as const

/** The filter core of the gateway, run in this page; and requests through the gateway, if it allows them. */
export function Playground() {
  const { tab = 'masks' } = place.value.params
  return (
    <article>
      <header class="title">
        <h1>Playground</h1>
        <span class="quiet">
          {tab === 'chat' || tab === 'tools'
            ? 'Requests through a listener of this gateway, as any client sends them.'
            : 'The code that proxies run, here in the page. What you type stays in it.'}
        </span>
      </header>
      <nav class="tabs" aria-label="Parts of the playground">
        {tabs.map(({ id, title }) => (
          <button
            key={id}
            type="button"
            aria-pressed={id === tab}
            onClick={() => setParams({ tab: id })}
          >
            {title}
          </button>
        ))}
      </nav>
      {tabs.map(({ id, Tab }) => id === tab && <Tab key={id} />)}
    </article>
  )
}
