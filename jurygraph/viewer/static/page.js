// A number that is tried becomes a setting `key=value` of the form; without this script the forms still work by choice lists.
document.addEventListener("input", (event) => {
  const key = event.target.dataset.setting;
  if (key) event.target.nextElementSibling.value = `${key}=${event.target.value}`;
});
