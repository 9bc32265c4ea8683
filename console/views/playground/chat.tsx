/** A chat with a model through the gateway, with the bytes beside it. */
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import {
  answerText,
  type ChatFormatName,
  type ChatMessage,
  chatFormats,
  chatPath,
} from '../../models/chat.ts'
import type { SendPlace } from '../../models/send-places.ts'
import { type PageRequest, type PageResponse, sendThrough } from '../../source/send.ts'
import { linkTo } from '../../state/location.ts'
import { served } from '../../state/served.ts'
import { Failure } from '../../ui/states.tsx'
import { authorization, Places, Raw } from './send-form.tsx'

export const Chat = () => (
  <Places type="chat" none="No route leads to a model at this moment.">
    {(place) => <Conversation key={place.title} place={place} />}
  </Places>
)

interface Asked {
  readonly model: string
  readonly format: ChatFormatName
  readonly isStream: boolean
}

function requestOf(place: SendPlace, asked: Asked, messages: readonly ChatMessage[]): PageRequest {
  const { scheme, port, host, path } = place
  const { model, format, isStream } = asked
  const { headers, body } = chatFormats[format]
  return {
    scheme,
    port,
    method: 'POST',
    path: chatPath(format, path),
    headers: { host, 'content-type': 'application/json', ...headers, ...authorization() },
    body: JSON.stringify(body(model, messages, isStream)),
  }
}

function useConversation(place: SendPlace) {
  const [messages, setMessages] = useState<readonly ChatMessage[]>([])
  const [request, setRequest] = useState<PageRequest>()
  const [response, setResponse] = useState<PageResponse>()
  const [error, setError] = useState<string>()
  const sending = useRef<AbortController>(undefined)
  const [isBusy, setBusy] = useState(false)
  const send = async (asked: Asked, content: string) => {
    const server = served.value?.server
    if (server === undefined) return
    const next = [...messages, { role: 'user' as const, content }]
    const sent = requestOf(place, asked, next)
    const ending = new AbortController()
    sending.current = ending
    setMessages(next)
    setRequest(sent)
    setResponse(undefined)
    setError(undefined)
    setBusy(true)
    try {
      const { signal } = ending
      const last = await sendThrough(server, sent, signal, (part) => {
        setResponse(part)
        const answer = answerText(asked.format, part)
        if (answer !== '') setMessages([...next, { role: 'assistant', content: answer }])
      })
      setError(last.problem)
    } catch (thrown) {
      if (!ending.signal.aborted) setError((thrown as Error).message)
    }
    setBusy(false)
  }
  const clear = () => {
    setMessages([])
    setRequest(undefined)
    setResponse(undefined)
  }
  const stop = () => {
    sending.current?.abort()
    setBusy(false)
  }
  return { messages, request, response, error, isBusy, send, clear, stop }
}

function Conversation({ place }: { place: SendPlace }) {
  const chat = useConversation(place)
  const { messages, request, response, error, isBusy } = chat
  const id = response?.headers['x-request-id']
  return (
    <div class="pair">
      <section class="card" aria-labelledby="chat">
        <h2 id="chat">Chat</h2>
        <ol class="chat" aria-live="polite">
          {messages.map(({ role, content }, at) => (
            <li key={at} class={role}>
              <span class="quiet">{role}</span>
              <p>{content}</p>
            </li>
          ))}
        </ol>
        {error !== undefined && <Failure message={error} />}
        {response !== undefined && response.status >= 400 && (
          <p class="finding problem">The gateway answered {response.status}: see the bytes.</p>
        )}
        {id !== undefined && response?.durationMs !== undefined && (
          <p>
            <a href={linkTo('request', [id])}>What policies and guards did</a>
          </p>
        )}
        <Composer place={place} isBusy={isBusy} onSend={chat.send} onStop={chat.stop}>
          {messages.length > 0 && !isBusy && (
            <button type="button" onClick={chat.clear}>
              Start over
            </button>
          )}
        </Composer>
      </section>
      <Raw request={request} response={response} />
    </div>
  )
}

interface ComposerProps {
  readonly place: SendPlace
  readonly isBusy: boolean
  readonly onSend: (asked: Asked, content: string) => void
  readonly onStop: () => void
  readonly children: ComponentChildren
}

function Composer({ place, isBusy, onSend, onStop, children }: ComposerProps) {
  const [asked, setAsked] = useState<Asked>({
    model: place.models[0] ?? '',
    format: 'Chat Completions',
    isStream: true,
  })
  const [content, setContent] = useState('')
  const change = (part: Partial<Asked>) => setAsked((before) => ({ ...before, ...part }))
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        onSend(asked, content)
        setContent('')
      }}
    >
      <div class="send-form">
        <div class="wide">
          <label for="chat-model">Model</label>
          <input
            id="chat-model"
            list="models"
            value={asked.model}
            onInput={({ currentTarget }) => change({ model: currentTarget.value })}
          />
        </div>
        <datalist id="models">
          {place.models.map((model) => (
            <option key={model} value={model} />
          ))}
        </datalist>
        <div class="wide">
          <label for="chat-format">Format</label>
          <select
            id="chat-format"
            value={asked.format}
            onChange={({ currentTarget }) =>
              change({ format: currentTarget.value as ChatFormatName })
            }
          >
            {Object.keys(chatFormats).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </div>
        <label class="check">
          <input
            type="checkbox"
            checked={asked.isStream}
            onChange={({ currentTarget }) => change({ isStream: currentTarget.checked })}
          />
          Stream
        </label>
      </div>
      <label for="chat-message">Message</label>
      <textarea
        id="chat-message"
        rows={3}
        required
        value={content}
        onInput={({ currentTarget }) => setContent(currentTarget.value)}
      />
      {isBusy ? (
        <button type="button" onClick={onStop}>
          Stop
        </button>
      ) : (
        <button type="submit">Send</button>
      )}{' '}
      {children}
    </form>
  )
}
