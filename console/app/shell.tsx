import { useEffect, useRef, useState } from 'preact/hooks'
import { forgetToken, hasToken } from '../source/server.ts'
import { linkTo, place } from '../state/location.ts'
import { mayAct, served } from '../state/served.ts'
import { isServed, needsSignIn, openFile } from '../state/start.ts'
import { nextTheme, themeTexts } from '../state/theme.ts'
import { failure, log, useModel } from '../state/worker-client.ts'
import { MissingProxies } from '../ui/missing-proxies.tsx'
import { Empty, Failure } from '../ui/states.tsx'
import { isUtc, toggleZone } from '../ui/times.tsx'
import { Help } from './help.tsx'
import { listenToKeys } from './keys.ts'
import { later } from './later.tsx'
import { OpenFile } from './open-file.tsx'
import { Search } from './search.tsx'
import { TimeBar } from './time-bar.tsx'
import { groups, views } from './views.ts'

/** Most pages need no form, so its code is loaded when it is. */
const Held = later(async () => (await import('../ui/held.tsx')).Held)
const SignInForm = later(async () => (await import('./sign-in.tsx')).SignInForm)

/** The frame of every view: navigation, search, the shown moment, and notices about the log. */
export function Shell() {
  const help = useRef<HTMLDialogElement>(null)
  useEffect(() => listenToKeys(() => help.current?.showModal()), [])
  const isPast = place.value.position !== undefined && place.value.position < log.value.last
  return (
    <div class={isPast ? 'shell past' : 'shell'}>
      <header class="top">
        <a class="skip" href={linkTo(place.value.view)} onClick={focusMain}>
          Skip to the content
        </a>
        <a class="brand" href={linkTo('')}>
          Sluice
        </a>
        <Search />
        <div class="tools">
          {!isServed.value && log.value.state !== 'none' && <OpenFile isShort />}
          {isServed.value && hasToken() && (
            <button type="button" onClick={forgetToken} title={served.value?.about.person}>
              Sign out
            </button>
          )}
          <button type="button" onClick={toggleZone} title="Change the zone of all times">
            {isUtc.value ? 'UTC' : 'local time'}
          </button>
          <button type="button" onClick={nextTheme} title={themeTexts.value.action}>
            {themeTexts.value.inForce}
          </button>
          <button type="button" onClick={() => help.current?.showModal()} title="Keys (?)">
            ?
          </button>
        </div>
      </header>
      <Navigation />
      {log.value.count > 0 && <TimeBar />}
      <Notices />
      <DropTarget />
      <main id="main" tabIndex={-1}>
        <Main />
      </main>
      <Help dialog={help} />
    </div>
  )
}

/** The views by group. A group of one view of the same name needs no heading. */
const Navigation = () => (
  <nav class="views" aria-label="Views">
    {groups.map((group) => {
      const listed = views.filter(
        (view) => view.group === group && (!view.needsActions || mayAct()),
      )
      return (
        <div key={group}>
          {listed.length > 1 || listed[0]?.title !== group ? <h2>{group}</h2> : null}
          {listed.map(({ path, title }) => (
            <a
              key={path}
              href={linkTo(path)}
              aria-current={place.value.view === path ? 'page' : undefined}
            >
              {title}
            </a>
          ))}
        </div>
      )
    })}
  </nav>
)

function focusMain(event: MouseEvent): void {
  event.preventDefault()
  document.getElementById('main')?.focus()
}

function Main() {
  const entry =
    needsSignIn.value !== undefined ? views[0] : views.find(({ path }) => path === place.value.view)
  const { state } = log.value
  useEffect(() => {
    document.title = `${entry?.title ?? 'Not found'} – Sluice`
  }, [entry])
  if (entry === undefined) {
    return (
      <Empty>
        There is no view “{place.value.view}”. <a href={linkTo('')}>Go to the overview</a>
      </Empty>
    )
  }
  if (!entry.needsLog || log.value.count > 0) {
    return (
      <>
        {entry.needsHeading === true && <h1 class="unseen">{entry.title}</h1>}
        <entry.View />
      </>
    )
  }
  if (needsSignIn.value !== undefined) return <SignInForm />
  if (state === 'none' || state === 'failed') return <OpenFile />
  if (state === 'reading') return <p class="state loading">Reading {log.value.name}…</p>
  return <Empty>The log has no events yet. They appear here when the gateway writes some.</Empty>
}

function Notices() {
  const isHeld = useModel('held', undefined).value !== undefined
  const { notices, problem, identity } = log.value
  const { log: linked } = place.value.params
  const isOther = linked !== undefined && identity !== '' && linked !== identity
  return (
    <div class="notices">
      {failure.value !== undefined && <Failure message={failure.value} />}
      {problem !== undefined && <Failure message={problem} />}
      {isOther && (
        <p class="notice" role="status">
          The link is about another log: its first event differs from that of this one.
        </p>
      )}
      {notices.map((notice) => (
        <p key={notice} class="notice" role="status">
          {notice}
        </p>
      ))}
      {log.value.count > 0 && isHeld && <Held />}
      <MissingProxies />
    </div>
  )
}

/** Opens files that are dropped anywhere on the page. */
function DropTarget() {
  const [isOver, setOver] = useState(false)
  useEffect(() => {
    const over = (event: DragEvent) => {
      event.preventDefault()
      setOver(true)
    }
    const leave = () => setOver(false)
    const drop = (event: DragEvent) => {
      event.preventDefault()
      setOver(false)
      const file = event.dataTransfer?.files[0]
      if (file !== undefined) openFile(file)
    }
    addEventListener('dragover', over)
    addEventListener('dragleave', leave)
    addEventListener('drop', drop)
    return () => {
      removeEventListener('dragover', over)
      removeEventListener('dragleave', leave)
      removeEventListener('drop', drop)
    }
  }, [])
  return isOver ? <div class="drop">Drop an exported log to open it</div> : null
}
