// Writes a file into a note on the merge request of this pipeline. Replaces the note of an earlier pipeline, which it
// finds by the first line of the file. This line is not shown.
import { readFileSync } from 'node:fs'

const body = readFileSync(process.argv[2] ?? '', 'utf8')
const [marker = ''] = body.split('\n', 1)
const { CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID, SLUICE_GITLAB_TOKEN } = process.env

async function call(method, path, content) {
  const response = await fetch(`${CI_API_V4_URL}${path}`, {
    method,
    headers: { 'private-token': SLUICE_GITLAB_TOKEN, 'content-type': 'application/json' },
    ...(content && { body: JSON.stringify(content) }),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`)
  return response.json()
}

async function ownNote(notes, user) {
  for (let page = 1; ; page++) {
    const found = await call('GET', `${notes}?per_page=100&page=${page}`)
    const own = found.find((note) => note.author.id === user && note.body.startsWith(marker))
    if (own !== undefined || found.length < 100) return own
  }
}

const notes = `/projects/${CI_PROJECT_ID}/merge_requests/${CI_MERGE_REQUEST_IID}/notes`
const { id } = await call('GET', '/user')
const own = await ownNote(notes, id)
if (own === undefined) await call('POST', notes, { body })
else await call('PUT', `${notes}/${own.id}`, { body })
