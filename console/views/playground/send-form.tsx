/** What both playgrounds that send requests have in common: where to, with which key, and the bytes. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { SendPlace } from '../../models/send-places.ts'
import type { PageRequest, PageResponse } from '../../source/send.ts'
import { place, setParams } from '../../state/location.ts'
import { useModel } from '../../state/worker-client.ts'
import { Offered } from '../../ui/offered.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Content, Empty } from '../../ui/states.tsx'

/** The key of the client. It is in memory only, and goes to the gateway as any client sends it. */
const clientKey = signal('')

export const authorization = (): Readonly<Record<string, string>> =>
  clientKey.value === '' ? {} : { authorization: `Bearer ${clientKey.value}` }

interface PlacesProps {
  readonly type: 'chat' | 'tools'
  readonly none: string
  children(place: SendPlace): ComponentChildren
}

/** Chooses a place and a key; shows the rest if this process sends requests of pages. */
export function Places({ type, none, children }: PlacesProps) {
  const shown = useModel('sendPlaces', undefined)
  return (
    <Offered
      offer="send"
      otherwise="Sending requests is off. Start the gateway with `--console-actions true`."
    >
      <Content shown={shown} what="routes">
        {(answer) => {
          const places = answer[type]
          const chosen = places.find(({ title }) => title === place.value.params.place) ?? places[0]
          if (chosen === undefined) return <Empty>{none}</Empty>
          return (
            <>
              <div class="card send-form">
                <div class="wide">
                  <label for="send-route">Route</label>
                  <select
                    id="send-route"
                    value={chosen.title}
                    onChange={({ currentTarget }) => setParams({ place: currentTarget.value })}
                  >
                    {places.map(({ title }) => (
                      <option key={title}>{title}</option>
                    ))}
                  </select>
                </div>
                <div class="wide">
                  <label for="client-key">Key of the client</label>
                  <input
                    id="client-key"
                    type="password"
                    autocomplete="off"
                    placeholder="none"
                    value={clientKey.value}
                    onInput={({ currentTarget }) => {
                      clientKey.value = currentTarget.value
                    }}
                  />
                </div>
              </div>
              {children(chosen)}
            </>
          )
        }}
      </Content>
    </Offered>
  )
}

interface RawProps {
  readonly request: PageRequest | undefined
  readonly response: PageResponse | undefined
}

/** Keys and ids of sessions are credentials, so that a picture of the page has none. */
const hidden: Readonly<Record<string, string>> = {
  authorization: 'Bearer …',
  'mcp-session-id': '…',
  'set-cookie': '…',
}

/** The bytes of an exchange, as far as they have arrived. */
export function Raw({ request, response }: RawProps) {
  return (
    <section class="card" aria-labelledby="raw">
      <h2 id="raw">Bytes</h2>
      {request === undefined ? (
        <Empty>Nothing was sent yet.</Empty>
      ) : (
        <Scroll label="Bytes of the exchange">
          <pre class="raw">
            {`${request.method} ${request.path}\n`}
            {Object.entries(request.headers).map(
              ([name, value]) => `${name}: ${hidden[name] ?? value}\n`,
            )}
            {`\n${request.body ?? ''}`}
          </pre>
          {response !== undefined && response.status > 0 && (
            <pre class="raw answer">
              {`${response.status}\n`}
              {Object.entries(response.headers).map(
                ([name, value]) => `${name}: ${hidden[name] ?? value}\n`,
              )}
              {`\n${response.body}`}
            </pre>
          )}
          {response?.durationMs !== undefined && (
            <p class="quiet">Complete after {response.durationMs} ms.</p>
          )}
        </Scroll>
      )}
    </section>
  )
}
