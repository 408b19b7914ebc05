// How results of the search are ordered: what answers a question stands before pages of results.
const FOLDERS = [
  [/^how_to\//, 12],
  [/^api\/generated\//, 9],
  [/^(understand|getting_started)/, 7],
  [/^auto_examples\//, 3],
  [/^(evidence|measured|changelog|development)/, -10],
];

var Scorer = {
  // A result is [page, title, anchor, description, score, file].
  score: (result) => {
    const folder = FOLDERS.find(([pattern]) => pattern.test(result[0]));
    return result[4] + (folder ? folder[1] : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
