/** Passes a text on if it differs from the one before. An empty text means that all is well again. */
export function onlyChanges(notify: (text: string) => void): (text: string) => void {
  let last = ''
  return (text) => {
    if (text !== '' && text !== last) notify(text)
    last = text
  }
}
