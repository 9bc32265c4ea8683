/** What is shown in place of content: while it loads, if there is none, and if it cannot be had. */
import type { ComponentChildren } from 'preact'
import type { Shown } from '../state/worker-client.ts'

/** Appears after a moment, so that quick answers do not flicker. */
export const Loading = ({ what }: { what: string }) => (
  <p class="state loading" role="status">
    Loading {what}…
  </p>
)

export const Empty = ({ children }: { children: ComponentChildren }) => (
  <p class="state empty">{children}</p>
)

export const Failure = ({ message }: { message: string }) => (
  <p class="state failure" role="alert">
    {message}
  </p>
)

interface ContentProps<Value> {
  readonly shown: Shown<Value>
  readonly what: string
  children(value: Value): ComponentChildren
}

/** The content of a view, with what was shown before while the next answer is awaited. */
export function Content<Value>({ shown, what, children }: ContentProps<Value>) {
  const { value, error, isBusy } = shown
  return (
    <div class="content" aria-busy={isBusy}>
      {error !== undefined && <Failure message={error} />}
      {value === undefined ? error === undefined && <Loading what={what} /> : children(value)}
    </div>
  )
}
